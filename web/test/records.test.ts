import { expect, test } from "vitest";
import { records } from "../src/layout/records";

test("a table's rows are objects by the heads of its columns", () => {
  const rows = [["cause", "A", "", "A"], ["first touch", "1\u00a0000", " x ", "2"], ["swap"]];
  expect(JSON.parse(records(rows))).toEqual([
    { cause: "first touch", A: "1 000", "column 3": "x", "A (2)": "2" },
    { cause: "swap", A: "", "column 3": "", "A (2)": "" },
  ]);
  expect(JSON.parse(records([]))).toEqual([]);
});
