//! Any bytes as the text of perf script: never a panic, columns of one length, stacks that lead to the root.
#![no_main]

mod columns;

use libfuzzer_sys::fuzz_target;
use pagewise_formats::perf_script;

fuzz_target!(|bytes: &[u8]| {
    let _ = perf_script::looks_like(bytes);
    let profile = perf_script::read(bytes).expect("memory is readable");
    columns::check(&profile);
});
