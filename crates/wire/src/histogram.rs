//! Latencies by size: two buckets for each power of two.

use crate::shared::LATENCY_BUCKETS;

/// The bucket of a duration: `n` for `[2^(n/2), 2^((n+1)/2))`, with the half powers rounded to 1.5.
#[must_use]
pub fn bucket(nanoseconds: u64) -> usize {
    let value = nanoseconds.max(1);
    let power = value.ilog2();
    let upper = power > 0 && value >> (power - 1) & 1 == 1;
    (power as usize * 2 + usize::from(upper)).min(LATENCY_BUCKETS - 1)
}

/// The smallest duration in a bucket.
#[must_use]
pub fn least(bucket: usize) -> u64 {
    let power = 1u64 << (bucket / 2);
    match bucket % 2 {
        1 => power + power / 2,
        _ => power,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_begins_where_the_last_ends() {
        for index in 3..LATENCY_BUCKETS {
            let start = least(index);
            assert_eq!(bucket(start), index);
            assert_eq!(bucket(start - 1), index - 1, "{start}");
        }
    }
}
