//! Any bytes as folded stacks: never a panic, columns of one length, stacks that lead to the root.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagewise_model::formats::folded;

fuzz_target!(|bytes: &[u8]| {
    let _ = folded::looks_like(bytes);
    let profile = folded::read(bytes).expect("memory is readable");
    assert!(profile.samples.times.is_sorted());
    for sample in profile.samples.iter() {
        assert!((sample.thread as usize) < profile.threads.len());
        assert!(usize::from(sample.event) < profile.events.len());
        for frame in profile.stacks.frames(sample.stack) {
            assert!((frame.0 as usize) < profile.frames.len());
        }
    }
});
