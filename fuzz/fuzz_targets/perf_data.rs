//! Any bytes: parsed or refused, never a panic, and what is handed out adds up.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagewise_formats::perf_data::PerfData;
use pagewise_model::event::Event;

fuzz_target!(|bytes: &[u8]| {
    let Ok(data) = PerfData::parse(bytes) else {
        return;
    };
    let mut frames = 0;
    data.read(
        |event| {
            if let Event::Sample(sample) = event {
                assert!(usize::from(sample.source.0) < data.sources().len());
                frames += sample.callchain.frames().count();
            }
        },
        |offset| assert!(offset <= bytes.len()),
    );
    assert!(frames <= bytes.len().saturating_mul(1 << 16));
});
