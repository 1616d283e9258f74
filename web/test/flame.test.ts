import { expect, test } from "vitest";
import type { FlameNode } from "../src/data/types";
import { boxes, search, step } from "../src/layout/flame";
import { flatten, Grower, matching, preorder, ranks, rollUp } from "../src/layout/tree";

const node = (name: string, total: number, children: FlameNode[] = [], module = "app"): FlameNode => ({ name, module, total, children });
const SAMPLE = node("all", 100, [node("main", 90, [node("read", 60, [node("fault", 20)]), node("write", 30)]), node("thread", 10)]);

test("boxes lie within their callers and are as wide as their share", () => {
  const { tree, totals, frames } = flatten(SAMPLE);
  const placed = boxes(tree, totals, 0, 1000).map(({ node, left, width, depth }) => [frames[tree.frames[node]!]!.name, left, width, depth]);
  expect(placed).toEqual([
    ["all", 0, 1000, 0],
    ["main", 0, 900, 1],
    ["read", 0, 600, 2],
    ["fault", 0, 200, 3],
    ["write", 600, 300, 2],
    ["thread", 900, 100, 1],
  ]);
});

test("children that claim more than their parent are cut down to it", () => {
  const { totals } = flatten(node("all", 10, [node("a", 8), node("b", 8), node("c", -1)]));
  expect([...totals]).toEqual([10, 8, 2]);
});

test("zooming shows the callers in full and only what lies below", () => {
  const { tree, totals } = flatten(SAMPLE);
  const shown = boxes(tree, totals, 2, 600);
  expect(shown.map(({ node, left, width, isAncestor }) => [node, left, width, isAncestor])).toEqual([
    [0, 0, 600, true],
    [1, 0, 600, true],
    [2, 0, 600, false],
    [3, 0, 200, false],
  ]);
});

test("what is too narrow to see is passed over with all below it", () => {
  const { tree, totals } = flatten(node("all", 1e6, [node("wide", 999_999), node("thin", 1, [node("below", 1)])]));
  expect(boxes(tree, totals, 0, 1000).map(({ node }) => node)).toEqual([0, 1]);
});

test("nested matches count once, by name or file, whatever the case", () => {
  const { tree, totals, frames } = flatten(SAMPLE);
  expect(search(tree, totals, matching(frames, "MAIN"))).toMatchObject({ count: 1, share: 0.9 });
  expect(search(tree, totals, matching(frames, "app"))).toMatchObject({ count: 5, share: 1 });
  expect(search(tree, totals, matching(frames, " "))).toEqual({ frames: null, count: 0, share: 0 });
});

test("arrow keys lead to callers, callees and siblings that have weight", () => {
  const { tree, totals } = flatten(SAMPLE);
  expect(step(tree, totals, 0, "ArrowDown")).toBe(1);
  expect(step(tree, totals, 2, "ArrowRight")).toBe(4);
  expect(step(tree, totals, 4, "ArrowLeft")).toBe(2);
  expect(step(tree, totals, 5, "ArrowRight")).toBeNull();
  expect(step(tree, totals, 3, "ArrowUp")).toBe(2);
  totals[2] = 0;
  expect(step(tree, totals, 1, "ArrowDown")).toBe(4);
});

test("ten thousand frames deep is laid out without recursion", () => {
  let deepest = node("f", 1);
  for (let at = 0; at < 9_999; at += 1) deepest = node("f", 1, [deepest]);
  const { tree, totals } = flatten(node("all", 1, [deepest]));
  expect(boxes(tree, totals, 0, 100)).toHaveLength(10_001);
  expect(tree.depths[10_000]).toBe(10_000);
});

test("a tree is told by how far back each caller is", () => {
  // root → a → b, root → a → c → d, root → e
  const tree = preorder(Uint32Array.from([0, 0, 0, 1, 0, 3]), Uint32Array.from([0, 0, 1, 2, 3, 4]));
  expect([...tree.parents]).toEqual([0, 0, 1, 1, 3, 0]);
  expect([...tree.ends]).toEqual([6, 5, 3, 5, 5, 6]);
  expect([...rollUp(tree, Float64Array.from([0, 0, 1, 2, 4, 8]))]).toEqual([15, 7, 1, 6, 4, 8]);
});

test("a grown tree comes out in order, siblings by name, weights with their nodes", () => {
  const frames = ["z", "m", "a"].map((name) => ({ name, module: "" }));
  const grower = new Grower(frames.length);
  const z = grower.child(0, 0);
  grower.a[grower.child(z, 1)] = 5;
  grower.b[grower.child(0, 2)] = 7;
  expect(grower.child(0, 0)).toBe(z);
  const { tree, a, b } = grower.finish(ranks(frames));
  expect([...tree.frames]).toEqual([0, 2, 0, 1]);
  expect([[...a], [...b]]).toEqual([[0, 0, 0, 5], [0, 7, 0, 0]]);
});

test("a search is a regular expression, or the text where it is none", () => {
  const frames = ["operator new(unsigned long)", "malloc", "__libc_malloc", "free", "a(b"].map((name) => ({ name, module: "libc.so.6" }));
  const found = (query: string) => [...(matching(frames, query) ?? [])];
  expect(matching(frames, "  ")).toBe(null);
  expect(found("^malloc$")).toEqual([0, 1, 0, 0, 0]);
  expect(found("MALLOC|free")).toEqual([0, 1, 1, 1, 0]);
  expect(found("new(unsigned")).toEqual([1, 0, 0, 0, 0]);
  expect(found("a(b")).toEqual([0, 0, 0, 0, 1]);
  expect(found("libc\\.so")).toEqual([1, 1, 1, 1, 1]);
});
