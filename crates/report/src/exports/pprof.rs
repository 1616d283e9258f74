//! pprof's gzipped protobuf (proto/profile.proto of github.com/google/pprof), for `go tool pprof`,
//! Pyroscope, Parca, Grafana and others.
//!
//! ```text
//! Profile { sample_type = 1, sample = 2, mapping = 3, location = 4, function = 5,
//!           string_table = 6, time_nanos = 9, duration_nanos = 10, period_type = 11, period = 12, comment = 13 }
//! ValueType { type = 1, unit = 2 }
//! Sample { location_id = 1, value = 2, label = 3 { key = 1, str = 2, num = 3 } }
//! Mapping { id = 1, filename = 5, has_functions = 7 }
//! Location { id = 1, mapping_id = 2, line = 4 { function_id = 1 } }
//! Function { id = 1, name = 2, system_name = 3, filename = 4 }
//! ```
//!
//! Each event is a type of value; samples with the same stack and thread are merged, with labels
//! for thread, process and thread id. There are no addresses, so pprof's disassembly has nothing to
//! show.

use super::protobuf::Message;
use super::strings::Strings;
use flate2::Compression;
use flate2::write::GzEncoder;
use pagewise_model::profile::{FrameKind, NodeId, Profile, WeightUnit};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes a profile.
///
/// # Errors
/// When `out` can't be written.
pub fn write(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let mut packed = GzEncoder::new(out, Compression::default());
    packed.write_all(encoded(profile).bytes_so_far())?;
    packed.finish()?;
    Ok(())
}

fn encoded(profile: &Profile) -> Message {
    let mut strings = Strings::default();
    let mut whole = Message::default();
    for event in &profile.events {
        let unit = match event.unit {
            WeightUnit::Nanoseconds => "nanoseconds",
            WeightUnit::Bytes => "bytes",
            WeightUnit::Events | WeightUnit::Samples => "count",
        };
        whole.message(1, &value_type(&mut strings, &event.name, unit));
    }
    samples(profile, &mut strings, &mut whole);
    functions(profile, &mut strings, &mut whole);
    if let Some((event, hz)) = profile
        .events
        .first()
        .zip(profile.events.first().and_then(|event| event.frequency))
    {
        whole.message(11, &value_type(&mut strings, &event.name, "nanoseconds"));
        whole.number(12, 1_000_000_000 / hz.max(1));
    }
    if let Some(began) = profile.began_unix {
        whole.number(9, began.0);
    }
    whole.number(10, profile.span.0);
    for note in &profile.notes {
        whole.number(13, strings.number(note));
    }
    strings.all().for_each(|text| whole.text(6, text));
    whole
}

fn value_type(strings: &mut Strings, name: &str, unit: &str) -> Message {
    let mut value = Message::default();
    value.number(1, strings.number(name));
    value.number(2, strings.number(unit));
    value
}

fn samples(profile: &Profile, strings: &mut Strings, whole: &mut Message) {
    let mut sums: BTreeMap<(NodeId, u32), Vec<u64>> = BTreeMap::new();
    for sample in profile.samples.iter() {
        let values = sums.entry((sample.stack, sample.thread)).or_default();
        values.resize(profile.events.len(), 0);
        if let Some(value) = values.get_mut(usize::from(sample.event)) {
            *value = value.saturating_add(sample.weight);
        }
    }
    for ((stack, thread), values) in sums {
        let mut sample = Message::default();
        let locations = profile.stacks.frames(stack);
        sample.packed(1, locations.map(|frame| u64::from(frame.0) + 1));
        // Values are signed there.
        sample.packed(
            2,
            values.into_iter().map(|value| value.min(i64::MAX as u64)),
        );
        if let Some(thread) = profile.threads.get(thread as usize) {
            let mut label = Message::default();
            label.number(1, strings.number("thread"));
            label.number(2, strings.number(&thread.comm));
            sample.message(3, &label);
            for (key, id) in [("pid", thread.pid), ("tid", thread.tid)] {
                if let Ok(id) = u64::try_from(id) {
                    let mut label = Message::default();
                    label.number(1, strings.number(key));
                    label.number(3, id);
                    sample.message(3, &label);
                }
            }
        }
        whole.message(2, &sample);
    }
}

/// Functions, each with its only known location, and the files that contain them.
fn functions(profile: &Profile, strings: &mut Strings, whole: &mut Message) {
    let mut files: BTreeMap<&str, u64> = BTreeMap::new();
    for (id, frame) in (1_u64..).zip(&profile.frames) {
        let next = files.len() as u64 + 1;
        let mapping = match (&*frame.module, frame.kind) {
            ("", _) | (_, FrameKind::Inlined) => 0,
            (module, _) => *files.entry(module).or_insert(next),
        };
        let mut line = Message::default();
        line.number(1, id);
        let mut location = Message::default();
        location.number(1, id);
        location.number(2, mapping);
        location.message(4, &line);
        whole.message(4, &location);
        let name = strings.number(&frame.name);
        let mut function = Message::default();
        function.number(1, id);
        function.number(2, name);
        function.number(3, name);
        whole.message(5, &function);
    }
    let mut by_number: Vec<(u64, &str)> = files.into_iter().map(|(name, id)| (id, name)).collect();
    by_number.sort_unstable();
    for (id, name) in by_number {
        let mut mapping = Message::default();
        mapping.number(1, id);
        mapping.number(5, strings.number(name));
        mapping.number(7, 1);
        whole.message(3, &mapping);
    }
}
