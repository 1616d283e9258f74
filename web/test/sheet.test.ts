import { expect, test } from "vitest";
import { most, safeLink, scaleOf } from "../src/layout/sheet";

const cell = (value: number, low: number, high: number) => ({ text: "", value, interval: [low, high] as [number, number] });

test("bars are as long as the largest figure, and none is without one", () => {
  expect(most([cell(2, 0, 0), cell(-4, 0, 0), { text: "–" }])).toBe(4);
  expect(2 / most([{ text: "–" }])).toBeGreaterThan(0);
});

test("intervals of one sign start at zero, others have zero between", () => {
  const up = scaleOf([cell(3, 1, 10)]);
  expect([up.at(0), up.at(10), up.zero]).toEqual([1, 99, null]);
  const both = scaleOf([cell(0, -10, 10), { text: "–" }]);
  expect([both.at(-10), both.at(0), both.zero]).toEqual([1, 50, 50]);
});

test("links lead into the page or to a page next to it", () => {
  expect(safeLink("#host-web-17")).toBe("#host-web-17");
  expect(safeLink("day=2026-11-22/host=web 17/report.html")).toBe("day%3D2026-11-22/host%3Dweb%2017/report.html");
  for (const bad of ["javascript:alert(1)", "//evil/x.html", "https://evil/x.html", "\\\\evil\\x.html", "data:text/html,x", "#a b", "/etc/x.html", "x.html?y"]) expect(safeLink(bad)).toBeNull();
});
