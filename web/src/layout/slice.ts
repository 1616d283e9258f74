/**
 * Samples of one event by threads, CPU and idleness, and the weights of any range of their time. A
 * filter is applied once, to columns; after a drag, only the range is added up, or everything
 * outside it if that is less.
 */
import type { Profiles, Side, Track } from "../data/profile";
import { rollUp, type Tree } from "./tree";

export interface Filter {
  /** For each thread, 1 if it counts; null for all. */
  threads: Uint8Array | null;
  /** A CPU's number, or null for all. */
  cpu: number | null;
  /** Whether samples of idle CPUs count. */
  idle: boolean;
}

/** Ticks from the first moment, the end not included; null is everything. */
export type Range = [from: number, to: number] | null;

export interface Slice {
  side: Side;
  track: Track;
  /** Sum of all samples' weights by leaf of the track; computed when first needed. */
  whole: Float64Array | null;
}

/** For each leaf of a track, 1 if its stack is that of an idle CPU. */
export function idleLeaves(profiles: Profiles, track: Track): Uint8Array {
  return Uint8Array.from(track.leaves, (node) => (node === 0 ? 0 : profiles.idle[profiles.tree.frames[node]!]!));
}

export function slice(profiles: Profiles, side: Side, track: Track, filter: Filter): Slice {
  const idle = filter.idle ? null : idleLeaves(profiles, track);
  const isIdle = idle?.includes(1) ? idle : null;
  const cpu = filter.cpu === null ? -1 : track.cpuNumbers.indexOf(filter.cpu);
  if (!isIdle && filter.cpu === null && !filter.threads) return { side, track, whole: null };
  const keeps = (at: number) => (isIdle === null || isIdle[track.stacks[at]!] === 0) && (filter.cpu === null || track.cpus[at] === cpu) && (filter.threads === null || filter.threads[track.threads[at]!] === 1);
  const rows = new Uint32Array(track.count);
  let count = 0;
  for (let at = 0; at < track.count; at += 1) if (keeps(at)) rows[count++] = at;
  const pick = <T extends Uint32Array | Uint16Array | Float64Array>(column: T, into: T): T => {
    for (let at = 0; at < count; at += 1) into[at] = column[rows[at]!]!;
    return into;
  };
  const weight = typeof track.weight === "number" ? track.weight : pick(track.weight, new Float64Array(count));
  const kept: Track = { ...track, count, weight, times: pick(track.times, new Uint32Array(count)), cpus: pick(track.cpus, new Uint16Array(count)), threads: pick(track.threads, new Uint32Array(count)), stacks: pick(track.stacks, new Uint32Array(count)) };
  return { side, track: kept, whole: null };
}

/** First index whose time is not below `time`. */
export function lowerBound(times: Uint32Array, time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Indices of a range's samples. */
export const rowsOf = ({ track }: Slice, range: Range): [from: number, to: number] => (range ? [lowerBound(track.times, range[0]), lowerBound(track.times, range[1])] : [0, track.count]);

/** Weights by leaf of the samples from one index to another. */
function sum(track: Track, from: number, to: number): Float64Array {
  const { stacks, weight } = track;
  const sums = new Float64Array(track.leaves.length);
  if (typeof weight === "number") {
    const counts = new Uint32Array(track.leaves.length);
    for (let at = from; at < to; at += 1) counts[stacks[at]!]! += 1;
    for (let leaf = 0; leaf < counts.length; leaf += 1) sums[leaf] = counts[leaf]! * weight;
  } else for (let at = from; at < to; at += 1) sums[stacks[at]!]! += weight[at]!;
  return sums;
}

export interface Weights {
  /** Weight of each node with everything below it; that of the root is the whole. */
  totals: Float64Array;
  samples: number;
  /** Length of the range, nanoseconds. */
  span: number;
}

/** Weights of all nodes in a range, or in everything except that range. */
export function weigh(tree: Tree, slice: Slice, range: Range, rest = false): Weights {
  const { track, side } = slice;
  const [from, to] = rowsOf(slice, range);
  const inside = to - from;
  slice.whole ??= sum(track, 0, track.count);
  let leaves: Float64Array;
  if (range === null) leaves = rest ? new Float64Array(track.leaves.length) : slice.whole;
  else {
    const isFewer = inside <= track.count - inside;
    const some = isFewer ? sum(track, from, to) : sumAround(track, from, to);
    leaves = isFewer === rest ? slice.whole.map((all, leaf) => all - some[leaf]!) : some;
  }
  const totals = new Float64Array(tree.count);
  for (let leaf = 0; leaf < leaves.length; leaf += 1) totals[track.leaves[leaf]!]! += leaves[leaf]!;
  const length = range ? rangeSpan(side, range) : side.span_ns;
  return { totals: rollUp(tree, totals), samples: rest ? track.count - inside : inside, span: Math.max(1, rest ? side.span_ns - length : length) };
}

function sumAround(track: Track, from: number, to: number): Float64Array {
  const sums = sum(track, 0, from);
  sum(track, to, track.count).forEach((weight, leaf) => (sums[leaf]! += weight));
  return sums;
}

/** How much of a range was observed, nanoseconds. */
export function rangeSpan(side: Side, [from, to]: [number, number]): number {
  return Math.max(0, Math.min(side.span_ns, to * side.tick_ns) - Math.max(0, from * side.tick_ns));
}

/** Weights and samples of each thread in a range. */
export function byThread(slice: Slice, range: Range): Float64Array {
  const { track } = slice;
  const weights = new Float64Array(slice.side.threads.count);
  const [from, to] = rowsOf(slice, range);
  const { weight, threads } = track;
  for (let at = from; at < to; at += 1) weights[threads[at]!]! += typeof weight === "number" ? weight : weight[at]!;
  return weights;
}
