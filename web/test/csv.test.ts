import { expect, test } from "vitest";
import { csv } from "../src/layout/csv";
import { added, read, written, type Act } from "../src/layout/view";

test("cells with commas, quotes and lines are quoted", () => {
  expect(csv([["a,b", 'say "x"', "c"], ["1\u00a0000", "−3 %", "+0.24 s"]])).toBe('"a,b","say ""x""",c\r\n1 000,−3 %,+0.24 s\r\n');
});

test("a name becomes no formula", () => {
  expect(csv([["=HYPERLINK(1)", "@x", "-cmd", "+evil", "-5"]])).toBe("'=HYPERLINK(1),'@x,'-cmd,'+evil,-5\r\n");
});

test("a view is read as it was written", () => {
  const typed: Act[] = [{ part: "flame", at: 0, text: "m" }, { part: "flame", at: 0, text: "ma.l,l oc%" }];
  const acts = typed.reduce<Act[]>((all, act) => added(all, act), [{ part: "also-faults", at: 3 }]);
  expect(acts).toHaveLength(2);
  expect(read(`#${written(acts)}`)).toEqual(acts);
  expect(read("#sites")).toEqual([]);
  expect(read("#view=sites,flame.x,a.1.%E0,b.2")).toEqual([{ part: "b", at: 2 }]);
  expect(written([])).toBe("");
});
