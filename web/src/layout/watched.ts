/** Shares of random pages that were watched, over time. */
import type { DistanceBucket } from "../data/schema";
import type { Bins } from "./histogram";
import type { Point } from "./series";

/** Least number of pages for a share: fewer scatter too much. */
const LEAST = 80;

/** The share of `part` in the recently watched pages, from counters that only grow. */
export function recentShares(times: number[], whole: number[], part: number[]): Point[] {
  let from = 0;
  return times.flatMap((x, at) => {
    while (whole[at]! - whole[from + 1]! >= LEAST) from += 1;
    const watched = whole[at]! - whole[from]!;
    return watched >= LEAST ? [{ x, y: (part[at]! - part[from]!) / watched }] : [];
  });
}

/** Buckets side by side on a logarithmic axis: buckets in between without any value are empty. */
export function distanceBins(buckets: DistanceBucket[]): Bins {
  const [first, last] = [buckets[0], buckets.at(-1)];
  if (first === undefined || last === undefined) return { edges: [], series: [[], []] };
  const edges = [Math.max(1, first.from_pages)];
  // Two per power of two from 2 on, as in counting.
  while (edges.at(-1)! < last.to_pages) {
    const edge = edges.at(-1)!;
    const power = 2 ** Math.floor(Math.log2(edge));
    edges.push(edge < 2 ? 2 : edge > power ? power * 2 : power * 1.5);
  }
  const series = (of: (bucket: DistanceBucket) => number) =>
    edges.slice(1).map((end) => buckets.reduce((sum, bucket) => sum + (bucket.to_pages === end ? of(bucket) : 0), 0));
  return { edges, series: [series((bucket) => bucket.refaults), series((bucket) => bucket.ahead)] };
}
