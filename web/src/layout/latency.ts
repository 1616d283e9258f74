/** Latency distributions as bars, on a logarithmic or a linear axis. */
import type { Bucket, Latency } from "../data/faultPaths";

export interface Axis {
  kind: "log" | "linear";
  low: number;
  high: number;
  /** Bars. */
  bins: number;
}

/** Bars per doubling on a logarithmic axis. */
const PER_OCTAVE = 6;
const LEAST_BINS = 30;
const MOST_BINS = 140;

/** A logarithmic axis that spans all distributions. */
export function logAxis(latencies: Latency[]): Axis {
  const filled = latencies.filter((latency) => latency.count > 0);
  if (filled.length === 0) return { kind: "log", low: 1, high: 10, bins: LEAST_BINS };
  const least = Math.min(...filled.map((latency) => Math.max(latency.min_ns, 1)));
  const most = Math.max(...filled.map((latency) => latency.max_ns), least + 1);
  let [low, high] = [Math.floor(Math.log2(least) * PER_OCTAVE), Math.ceil(Math.log2(most + 1) * PER_OCTAVE)];
  const missing = LEAST_BINS - (high - low);
  if (missing > 0) {
    low -= Math.floor(missing / 2);
    high += Math.ceil(missing / 2);
  }
  low = Math.max(0, low);
  return { kind: "log", low: 2 ** (low / PER_OCTAVE), high: 2 ** (high / PER_OCTAVE), bins: Math.min(MOST_BINS, high - low) };
}

/**
 * A linear axis from 0 that covers 98 of 100 values of every distribution; values beyond it are
 * counted separately.
 */
export function linearAxis(latencies: Latency[]): Axis {
  const filled = latencies.filter((latency) => latency.count > 0);
  const most = Math.max(...filled.map((latency) => Math.min(latency.max_ns, quantile(latency.buckets, 0.98) * 1.25)), 10);
  return { kind: "linear", low: 0, high: most, bins: 80 };
}

/** The value below which a share of the counts lies, taken as the end of its bucket. */
export function quantile(buckets: Bucket[], share: number): number {
  const all = buckets.reduce((sum, [, , count]) => sum + count, 0);
  let seen = 0;
  for (const [, high, count] of buckets) {
    seen += count;
    if (seen >= share * all) return high;
  }
  return buckets.at(-1)?.[1] ?? 0;
}

/** Place of a value on the axis, 0…1 if it is on the axis. */
export function place(axis: Axis, value: number): number {
  if (axis.kind === "linear") return (value - axis.low) / (axis.high - axis.low);
  return Math.log(Math.max(value, 1e-3) / axis.low) / Math.log(axis.high / axis.low);
}

/** The value at a place of the axis. */
export function valueAt(axis: Axis, at: number): number {
  if (axis.kind === "linear") return axis.low + at * (axis.high - axis.low);
  return axis.low * (axis.high / axis.low) ** at;
}

export interface Bars {
  counts: number[];
  /** Counts below and above the axis. */
  below: number;
  above: number;
}

/** Divides each bucket among the bars that it overlaps, so that no count is lost. */
export function bars(buckets: Bucket[], axis: Axis): Bars {
  const counts = new Array<number>(axis.bins).fill(0);
  let [below, above] = [0, 0];
  for (const [low, high, count] of buckets) {
    const from = place(axis, low) * axis.bins;
    const to = Math.max(place(axis, high) * axis.bins, from + 1e-9);
    const each = count / (to - from);
    if (from < 0) below += each * (Math.min(0, to) - from);
    if (to > axis.bins) above += each * (to - Math.max(axis.bins, from));
    const last = Math.min(axis.bins - 1, Math.ceil(to) - 1);
    for (let bin = Math.max(0, Math.floor(from)); bin <= last; bin += 1) {
      const part = Math.min(to, bin + 1) - Math.max(from, bin);
      if (part > 0) counts[bin]! += each * part;
    }
  }
  return { counts, below, above };
}
