import { expect, test } from "vitest";
import { logarithmic } from "../src/layout/scatter";

test("a logarithmic scale puts equal ratios at equal distances", () => {
  const { place, ticks } = logarithmic([[100, "100"], [1, "1"], [10, "10"]], [0, 200]);
  expect([place(1), place(10), place(100)].map(Math.round)).toEqual([0, 100, 200]);
  expect(ticks.map(({ label }) => label)).toEqual(["1", "100"]);
});

test("equal figures are in the middle, and none without a figure", () => {
  expect(logarithmic([[5, "5"], [5, "5"]], [0, 100]).place(5)).toBe(50);
  expect(logarithmic([[0, "0"]], [0, 100]).ticks).toEqual([]);
});
