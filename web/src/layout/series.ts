/** Time series: their common end, rates from counters, and thinning that keeps the peaks. */

export interface Point {
  x: number;
  y: number;
}

type Observed = { cost: { wall: number }; timeline: { points: { time: number }[]; pressure: { time: number }[] } };

/** Where all plots over time of one run end: the observed time, or the last point if that is later. */
export function endOf({ cost, timeline }: Observed): number {
  return Math.max(cost.wall, timeline.points.at(-1)?.time ?? 0, timeline.pressure.at(-1)?.time ?? 0);
}

/**
 * Increase per second between neighbouring points; a counter that falls (a process ended) counts as
 * 0.
 */
export function rates(times: number[], counter: number[]): Point[] {
  const points: Point[] = [];
  for (let at = 1; at < times.length; at += 1) {
    const seconds = (times[at]! - times[at - 1]!) / 1e9;
    if (seconds <= 0) continue;
    const rate = Math.max(0, counter[at]! - counter[at - 1]!) / seconds;
    points.push({ x: times[at]!, y: rate });
  }
  return points;
}

/** Tops of layers that stand one on top of the other, the first at the bottom. All have the same times. */
export function stacked(layers: Point[][]): Point[][] {
  const tops: Point[][] = [];
  for (const layer of layers) {
    const below = tops.at(-1);
    tops.push(layer.map(({ x, y }, at) => ({ x, y: y + (below?.[at]?.y ?? 0) })));
  }
  return tops;
}

/** At most about `most` points: the lowest and the highest of each stretch, in time order. */
export function thin(points: Point[], most: number): Point[] {
  if (points.length <= most) return points;
  const stretch = Math.ceil(points.length / (most / 2));
  const kept: Point[] = [];
  for (let from = 0; from < points.length; from += stretch) {
    const part = points.slice(from, from + stretch);
    const low = part.reduce((a, b) => (b.y < a.y ? b : a));
    const high = part.reduce((a, b) => (b.y > a.y ? b : a));
    if (low === high) kept.push(low);
    else kept.push(...(low.x < high.x ? [low, high] : [high, low]));
  }
  return kept;
}

/** Index of the point nearest to `x`; the points are in order. -1 if there are none. */
export function nearest(points: Point[], x: number): number {
  let low = 0;
  let high = points.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle]!.x < x) low = middle + 1;
    else high = middle;
  }
  if (low > 0 && x - points[low - 1]!.x < points[low]!.x - x) return low - 1;
  return points.length === 0 ? -1 : low;
}
