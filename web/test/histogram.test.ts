import { describe, expect, it } from "vitest";
import { bucketRange, buckets, quantile } from "../src/data/histogram";
import type { Histogram } from "../src/data/types";
import { logBins, padded, stacked } from "../src/layout/histogram";

/** The model's bucket_of, written from its description: one bit of length, seven of value. */
function bucketOf(value: number): number {
  const bits = Math.floor(Math.log2(Math.max(1, value))) + 1;
  if (bits <= 8) return value;
  const shift = bits - 8;
  return shift * 128 + Math.floor(value / 2 ** shift);
}

function histogramOf(values: number[]): Histogram {
  const histogram: Histogram = { buckets: {}, count: values.length, sum: 0, min: Math.min(...values), max: Math.max(...values) };
  for (const value of values) {
    const key = String(bucketOf(value));
    histogram.buckets[key] = (histogram.buckets[key] ?? 0) + 1;
    histogram.sum += value;
  }
  return histogram;
}

describe("buckets", () => {
  it("span what the model says, without gap or overlap", () => {
    for (let bucket = 0; bucket < 4_000; bucket += 1) {
      const [low, high] = bucketRange(bucket);
      expect(bucketOf(low)).toBe(bucket);
      expect(bucketRange(bucket + 1)[0]).toBe(high);
    }
  });

  it("sort by value, not by text", () => {
    expect(buckets(histogramOf([9, 100, 20_000])).map((b) => b.low)).toEqual([9, 100, 19_968]);
  });

  it("give quantiles within a hundredth", () => {
    const values = Array.from({ length: 1_000 }, (_, i) => (i + 1) * 37);
    expect(Math.abs(quantile(histogramOf(values), 0.5) / (500 * 37) - 1)).toBeLessThan(0.01);
    expect(quantile(histogramOf([5]), 0.99)).toBe(5);
  });
});

describe("logBins", () => {
  const values = [1, 3, 700, 1_350, 1_351, 2_900, 60_000, 1_048_576];
  it("loses no count, whatever the width of bins", () => {
    for (const perOctave of [1, 2, 4]) {
      const { edges, series } = logBins([histogramOf(values), histogramOf([1_350])], perOctave);
      const totals = series.map((counts) => counts.reduce((a, b) => a + b, 0));
      expect(totals[0]).toBeCloseTo(values.length, 9);
      expect(totals[1]).toBeCloseTo(1, 9);
      expect(edges[0]).toBeLessThanOrEqual(1);
      expect(edges.at(-1)).toBeGreaterThan(1_048_576);
    }
  });

  it("puts a power of two at the start of its bin", () => {
    const { edges, series } = logBins([histogramOf([131_072])], 2);
    expect(edges).toEqual([131_072, 131_072 * Math.SQRT2].map((edge) => expect.closeTo(edge, 3)));
    expect(series).toEqual([[1]]);
  });

  it("is empty for empty histograms", () => {
    const empty = { buckets: {}, count: 0, sum: 0, min: 0, max: 0 };
    expect(logBins([empty], 4)).toEqual({ edges: [], series: [[]] });
  });

  it("gains empty bins around few, and keeps their counts", () => {
    const bins = padded(logBins([histogramOf([131_072, 140_000])], 4), 4);
    expect(bins.edges.length - 1).toBe(24);
    expect(bins.series[0]!.reduce((a, b) => a + b, 0)).toBeCloseTo(2);
    expect(bins.edges).toEqual([...bins.edges].sort((a, b) => a - b));
  });
});

it("stacks series on top of each other", () => {
  expect(stacked([[1, 2], [3, 0]])).toEqual([[[0, 1], [0, 2]], [[1, 4], [2, 2]]]);
});
