import { expect, test } from "vitest";
import { runs } from "../src/layout/hugeMap";

test("equal cells become one run, and memory that is not there none", () => {
  expect(runs(["##.", "..5", " #"])).toEqual([
    { row: 0, from: 0, to: 2, huge: 1 },
    { row: 0, from: 2, to: 3, huge: 0 },
    { row: 1, from: 0, to: 2, huge: 0 },
    { row: 1, from: 2, to: 3, huge: 0.5 },
    { row: 2, from: 1, to: 2, huge: 1 },
  ]);
});
