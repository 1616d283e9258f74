//! Any bytes: read or refused, never a panic, and every access that is counted was handed over.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagewise_formats::memory_trace::{Accesses, read};

fuzz_target!(|bytes: &[u8]| {
    let mut seen = 0;
    let read = read(bytes, &mut |batch| {
        seen += match batch.accesses {
            Accesses::Addresses(addresses) => addresses.len() as u64,
            Accesses::Pages(runs) => runs.iter().map(|run| run.accesses()).sum(),
        }
    });
    if let Ok(summary) = read {
        assert_eq!(summary.accesses, seen);
        assert!(summary.writes <= seen);
    }
});
