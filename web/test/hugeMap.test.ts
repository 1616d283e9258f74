import { expect, test } from "vitest";
import { runs } from "../src/layout/hugeMap";

test("equal cells become one run", () => {
  expect(runs(["##.", "...", ""])).toEqual([
    { row: 0, from: 0, to: 2, isHuge: true },
    { row: 0, from: 2, to: 3, isHuge: false },
    { row: 1, from: 0, to: 3, isHuge: false },
  ]);
});
