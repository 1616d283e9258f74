//! Any bytes as folded stacks: never a panic, columns of one length, stacks that lead to the root.
#![no_main]

mod columns;

use libfuzzer_sys::fuzz_target;
use pagewise_formats::folded;

fuzz_target!(|bytes: &[u8]| {
    let _ = folded::looks_like(bytes);
    let profile = folded::read(bytes).expect("memory is readable");
    columns::check(&profile);
});
