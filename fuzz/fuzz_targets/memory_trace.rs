//! Any bytes: read or refused, never a panic, and every access that is counted was handed over.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagewise_model::formats::memory_trace::read;

fuzz_target!(|bytes: &[u8]| {
    let mut seen = 0;
    if let Ok(summary) = read(bytes, &mut |batch| seen += batch.addresses.len() as u64) {
        assert_eq!(summary.accesses, seen);
        assert!(summary.writes <= seen);
    }
});
