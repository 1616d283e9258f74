import type { Histogram } from "./types";

/**
 * First value of a bucket and the first past it: the counterpart of `bucket_range` in the model.
 */
export function bucketRange(bucket: number): [low: number, high: number] {
  if (bucket < 256) return [bucket, bucket + 1];
  const shift = Math.floor(bucket / 128) - 1;
  const low = (bucket - shift * 128) * 2 ** shift;
  return [low, low + 2 ** shift];
}

/** Filled buckets in ascending order. */
export function buckets(histogram: Histogram): { low: number; high: number; count: number }[] {
  return Object.entries(histogram.buckets)
    .map(([bucket, count]) => {
      const [low, high] = bucketRange(Number(bucket));
      return { low, high, count };
    })
    .sort((a, b) => a.low - b.low);
}

/** The value below which a share of the values lies; 0 when empty. */
export function quantile(histogram: Histogram, share: number): number {
  const rank = Math.max(1, Math.ceil(share * histogram.count));
  let seen = 0;
  for (const { low, high, count } of buckets(histogram)) {
    seen += count;
    if (seen >= rank) {
      const middle = low + Math.floor((high - low - 1) / 2);
      return Math.min(Math.max(middle, histogram.min), histogram.max);
    }
  }
  return histogram.max;
}
