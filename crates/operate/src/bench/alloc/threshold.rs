//! The smallest block that comes fresh from the kernel each time, by bisection.

use super::super::cycle::ask;
use super::bytes;
use anyhow::Result;
use pagewise_linux::allocation_cost::{Shape, page_size};
use pagewise_model::advice::Settings;
use pagewise_model::units::Bytes;
use std::time::Duration;

/// Smallest and largest block tried, as powers of two.
const POWERS: std::ops::RangeInclusive<u32> = 12..=26;
/// The edge is found to this many bytes.
const RESOLUTION: usize = 1 << 10;
/// Share of a block's pages that must fault for it to count as fresh. Huge pages cover 512 pages
/// with one fault, which `is_fresh` allows for by size.
const FRESH: f64 = 0.5;

/// The first edge from kept to fresh blocks, `None` if even the largest is kept.
pub fn find(settings: &Settings, spend: Duration) -> Result<Option<Bytes>> {
    edge(|size| {
        Ok(is_fresh(
            size,
            ask(Shape { size, blocks: 1 }, settings, spend)?.faults,
        ))
    })
}

/// Walks up in powers of two to the first fresh size, then bisects.
fn edge(mut is_fresh: impl FnMut(usize) -> Result<bool>) -> Result<Option<Bytes>> {
    let mut kept = 0;
    for power in POWERS {
        let size = 1 << power;
        if is_fresh(size)? {
            return bisect(kept, size, is_fresh).map(|edge| Some(bytes(edge)));
        }
        kept = size;
    }
    Ok(None)
}

/// Invariant: blocks of `kept` are kept (or it is 0), blocks of `fresh` are fresh.
fn bisect(
    mut kept: usize,
    mut fresh: usize,
    mut is_fresh: impl FnMut(usize) -> Result<bool>,
) -> Result<usize> {
    while fresh - kept > RESOLUTION {
        let middle = (kept + (fresh - kept) / 2).next_multiple_of(RESOLUTION);
        if middle >= fresh {
            break;
        }
        if is_fresh(middle)? {
            fresh = middle;
        } else {
            kept = middle;
        }
    }
    Ok(fresh)
}

fn is_fresh(size: usize, faults: f64) -> bool {
    let pages = size.div_ceil(page_size());
    faults >= FRESH * pages as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_an_edge_to_the_kibibyte_and_none_where_there_is_none() {
        for threshold in [100 << 10, 127 << 10, (32 << 20) - 4096, 1 << 12] {
            let found = edge(|size| Ok(size >= threshold)).unwrap().unwrap();
            assert!(
                found.0 >= threshold as u64 && found.0 - (threshold as u64) < 1024,
                "{found}"
            );
        }
        assert_eq!(edge(|_| Ok(false)).unwrap(), None);
    }
}
