/** Histograms with a logarithmic axis: from fine buckets to even bins. */
import { buckets } from "../data/histogram";
import type { Histogram } from "../data/types";

/** Fewer bins than this look like a wall, not like a distribution. */
const LEAST_BINS = 24;

export interface Bins {
  /** Edges, one more than bins. */
  edges: number[];
  /** For each series, a count for each bin. */
  series: number[][];
}

/**
 * Bins of equal ratio (`perOctave` for each doubling) that span all series. The count of a bucket
 * that crosses an edge is divided by width, so no count is lost.
 */
export function logBins(histograms: Histogram[], perOctave: number): Bins {
  const filled = histograms.filter((h) => h.count > 0);
  if (filled.length === 0) return { edges: [], series: histograms.map(() => []) };
  const position = (value: number) => Math.log2(Math.max(1, value)) * perOctave;
  const first = Math.floor(position(Math.min(...filled.map((h) => h.min))) + 1e-9);
  const last = Math.floor(position(Math.max(...filled.map((h) => h.max))) + 1e-9) + 1;
  const edges = Array.from({ length: last - first + 1 }, (_, i) => 2 ** ((first + i) / perOctave));
  const series = histograms.map((histogram) => spread(histogram, edges));
  return { edges, series };
}

function spread(histogram: Histogram, edges: number[]): number[] {
  const counts = new Array<number>(edges.length - 1).fill(0);
  let at = 0;
  for (const { low, high, count } of buckets(histogram)) {
    while (at < counts.length - 1 && low >= edges[at + 1]!) at += 1;
    for (let bin = at; bin < counts.length; bin += 1) {
      const from = bin === at ? low : Math.max(low, edges[bin]!);
      const to = bin === counts.length - 1 ? high : Math.min(high, edges[bin + 1]!);
      if (to > from) counts[bin]! += (count * (to - from)) / (high - low);
      if (to >= high) break;
    }
  }
  return counts;
}

/** A few empty bins on each side if there are too few for a picture. */
export function padded(bins: Bins, perOctave: number): Bins {
  const missing = LEAST_BINS - (bins.edges.length - 1);
  if (bins.edges.length < 2 || missing <= 0) return bins;
  const [before, after] = [Math.floor(missing / 2), Math.ceil(missing / 2)];
  const [first, last] = [bins.edges[0]!, bins.edges.at(-1)!];
  const ratio = 2 ** (1 / perOctave);
  const fit = Math.min(before, Math.floor(Math.log2(first) * perOctave + 1e-9));
  const lower = Array.from({ length: fit }, (_, i) => first / ratio ** (fit - i));
  const upper = Array.from({ length: after }, (_, i) => last * ratio ** (i + 1));
  const zeros = (length: number) => new Array<number>(length).fill(0);
  return {
    edges: [...lower, ...bins.edges, ...upper],
    series: bins.series.map((counts) => [...zeros(fit), ...counts, ...zeros(after)]),
  };
}

/** Counts on top of each other: for each series, [from, to] for each bin. */
export function stacked(series: number[][]): [number, number][][] {
  const tops = new Array<number>(series[0]?.length ?? 0).fill(0);
  return series.map((counts) =>
    counts.map((count, bin) => {
      const from = tops[bin]!;
      tops[bin] = from + count;
      return [from, from + count];
    }),
  );
}
