import { expect, test } from "vitest";
import { distanceBins, recentShares } from "../src/layout/watched";

test("a share is of the pages watched last, and of enough of them", () => {
  const times = [0, 1, 2, 3, 4];
  const whole = [0, 50, 100, 150, 250];
  const part = [0, 50, 100, 100, 100];
  expect(recentShares(times, whole, part)).toEqual([
    { x: 2, y: 1 },
    { x: 3, y: 0.5 },
    { x: 4, y: 0 },
  ]);
});

test("distances lie side by side, and none is lost", () => {
  const bucket = (from_pages: number, to_pages: number, refaults: number) => ({ from_pages, to_pages, refaults, ahead: 1 });
  const bins = distanceBins([bucket(0, 2, 5), bucket(3, 4, 7), bucket(8, 12, 9)]);
  expect(bins.edges).toEqual([1, 2, 3, 4, 6, 8, 12]);
  expect(bins.series).toEqual([
    [5, 0, 7, 0, 0, 9],
    [1, 0, 1, 0, 0, 1],
  ]);
  expect(distanceBins([]).edges).toEqual([]);
});
