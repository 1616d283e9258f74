//! OpenTelemetry's profiles (opentelemetry-proto, package
//! `opentelemetry.proto.profiles.v1development`, as of release 1.11): one `ProfilesData` message,
//! the body of an OTLP/HTTP request to a collector's `/v1development/profiles`. The version is not
//! stable yet.
//!
//! ```text
//! ProfilesData { resource_profiles = 1, dictionary = 2 }
//! ProfilesDictionary { mapping_table = 1, location_table = 2, function_table = 3, link_table = 4,
//!                      string_table = 5, attribute_table = 6, stack_table = 7 }
//! ResourceProfiles { resource = 1 { attributes = 1 }, scope_profiles = 2 }
//! ScopeProfiles { scope = 1 { name = 1, version = 2 }, profiles = 2 }
//! Profile { sample_type = 1, samples = 2, time_unix_nano = 3, duration_nano = 4, period_type = 5,
//!           period = 6 }
//! ValueType { type = 1, unit = 2 }
//! Sample { stack_index = 1, attribute_indices = 2, values = 4 }
//! Stack { location_indices = 1 }
//! Location { mapping_index = 1, lines = 3 { function_index = 1 }, attribute_indices = 4 }
//! Function { name = 1, system_name = 2 }
//! Mapping { filename = 4 }
//! KeyValueAndUnit { key = 1, value = 2 }, KeyValue { key = 1, value = 2 }
//! AnyValue { string_value = 1, int_value = 3 }
//! ```
//!
//! Each event is a profile, because a profile has one type of value; all share the dictionary, whose
//! tables begin with an empty entry that stands for "none". Samples with the same stack and thread
//! are merged.

use super::protobuf::Message;
use super::strings::Strings;
use pagewise_model::profile::{FrameKind, NodeId, Profile, ProfileThread, WeightUnit};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes a profile.
///
/// # Errors
/// When `out` can't be written.
pub fn write(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let mut dictionary = Dictionary::new(profile);
    let mut scope = Message::default();
    scope.message(1, &origin());
    for event in 0..profile.events.len() {
        scope.message(2, &of_event(profile, event, &mut dictionary));
    }
    let mut resource_profiles = Message::default();
    resource_profiles.message(1, &resource(profile));
    resource_profiles.message(2, &scope);
    let mut whole = Message::default();
    whole.message(1, &resource_profiles);
    whole.message(2, &dictionary.into_message());
    out.write_all(whole.bytes_so_far())
}

/// The instrumentation scope: who made the profile.
fn origin() -> Message {
    let mut scope = Message::default();
    scope.text(1, "pagewise");
    scope.text(2, env!("CARGO_PKG_VERSION"));
    scope
}

/// What was observed, by the names of OpenTelemetry's semantic conventions.
fn resource(profile: &Profile) -> Message {
    let known = [
        ("service.name", profile.service_name()),
        ("host.name", Some(&*profile.host.hostname)),
        ("host.arch", arch(&profile.host.architecture)),
        ("os.type", Some("linux")),
        ("os.version", Some(&*profile.host.kernel)),
    ];
    let mut resource = Message::default();
    for (key, value) in known {
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            continue;
        };
        let mut attribute = Message::default();
        attribute.text(1, key);
        attribute.message(2, &text(value));
        resource.message(1, &attribute);
    }
    resource
}

/// `uname -m` in the words of the conventions.
fn arch(machine: &str) -> Option<&str> {
    match machine {
        "" => None,
        "x86_64" => Some("amd64"),
        "aarch64" => Some("arm64"),
        other => Some(other),
    }
}

fn of_event(profile: &Profile, event: usize, dictionary: &mut Dictionary) -> Message {
    let about = &profile.events[event];
    let unit = match about.unit {
        WeightUnit::Nanoseconds => "nanoseconds",
        WeightUnit::Bytes => "bytes",
        WeightUnit::Events | WeightUnit::Samples => "count",
    };
    let mut message = Message::default();
    message.message(1, &dictionary.value_type(&about.name, unit));
    let mut sums: BTreeMap<(NodeId, u32), u64> = BTreeMap::new();
    for sample in profile.samples.iter() {
        if usize::from(sample.event) == event {
            let sum = sums.entry((sample.stack, sample.thread)).or_default();
            *sum = sum.saturating_add(sample.weight);
        }
    }
    for ((stack, thread), value) in sums {
        let mut sample = Message::default();
        sample.number(1, dictionary.stack(profile, stack));
        if let Some(thread) = profile.threads.get(thread as usize) {
            sample.packed(2, dictionary.thread(thread).into_iter());
        }
        // Values are signed there.
        sample.packed(4, [value.min(i64::MAX as u64)].into_iter());
        message.message(2, &sample);
    }
    if let Some(began) = profile.began_unix {
        message.fixed(3, began.0);
    }
    message.number(4, profile.span.0);
    if let Some(hz) = about.frequency {
        message.message(5, &dictionary.value_type(&about.name, "nanoseconds"));
        message.number(6, 1_000_000_000 / hz.max(1));
    }
    message
}

/// The tables that all profiles share. Entry 0 of each is empty.
struct Dictionary {
    strings: Strings,
    mappings: Vec<Message>,
    locations: Vec<Message>,
    functions: Vec<Message>,
    attributes: Vec<Message>,
    attribute_numbers: FxHashMap<Vec<u8>, u64>,
    stacks: Vec<Message>,
    stack_numbers: FxHashMap<NodeId, u64>,
}

impl Dictionary {
    /// With each frame as a function and its only location.
    fn new(profile: &Profile) -> Self {
        let nothing = || vec![Message::default()];
        let mut new = Self {
            strings: Strings::default(),
            mappings: nothing(),
            locations: nothing(),
            functions: nothing(),
            attributes: nothing(),
            attribute_numbers: FxHashMap::default(),
            stacks: nothing(),
            stack_numbers: FxHashMap::from_iter([(NodeId::ROOT, 0)]),
        };
        let mut files: FxHashMap<&str, u64> = FxHashMap::default();
        for (id, frame) in (1_u64..).zip(&profile.frames) {
            let name = new.strings.number(&frame.name);
            let mut function = Message::default();
            function.number(1, name);
            function.number(2, name);
            new.functions.push(function);

            let mut line = Message::default();
            line.number(1, id);
            let mut location = Message::default();
            if !frame.module.is_empty() && frame.kind != FrameKind::Inlined {
                let mapping = *files
                    .entry(&frame.module)
                    .or_insert_with(|| new.mapping(&frame.module));
                location.number(1, mapping);
            }
            location.message(3, &line);
            if let Some(kind) = frame_type(frame.kind) {
                let kind = new.attribute("profile.frame.type", &text(kind));
                location.packed(4, [kind].into_iter());
            }
            new.locations.push(location);
        }
        new
    }

    fn mapping(&mut self, file: &str) -> u64 {
        let mut mapping = Message::default();
        mapping.number(4, self.strings.number(file));
        self.mappings.push(mapping);
        self.mappings.len() as u64 - 1
    }

    fn value_type(&mut self, name: &str, unit: &str) -> Message {
        let mut value = Message::default();
        value.number(1, self.strings.number(name));
        value.number(2, self.strings.number(unit));
        value
    }

    /// The number of a stack, innermost frame first.
    fn stack(&mut self, profile: &Profile, stack: NodeId) -> u64 {
        let next = self.stacks.len() as u64;
        let number = *self.stack_numbers.entry(stack).or_insert(next);
        if number == next {
            let locations = profile.stacks.frames(stack);
            let mut message = Message::default();
            message.packed(1, locations.map(|frame| u64::from(frame.0) + 1));
            self.stacks.push(message);
        }
        number
    }

    fn thread(&mut self, thread: &ProfileThread) -> Vec<u64> {
        let mut known = Vec::new();
        for (key, id) in [("process.pid", thread.pid), ("thread.id", thread.tid)] {
            if let Ok(id) = u64::try_from(id) {
                let mut value = Message::default();
                value.number(3, id);
                known.push(self.attribute(key, &value));
            }
        }
        if !thread.comm.is_empty() {
            known.push(self.attribute("thread.name", &text(&thread.comm)));
        }
        known
    }

    fn attribute(&mut self, key: &str, value: &Message) -> u64 {
        let mut attribute = Message::default();
        attribute.number(1, self.strings.number(key));
        attribute.message(2, value);
        let next = self.attributes.len() as u64;
        let bytes = attribute.bytes_so_far().to_vec();
        let number = *self.attribute_numbers.entry(bytes).or_insert(next);
        if number == next {
            self.attributes.push(attribute);
        }
        number
    }

    fn into_message(self) -> Message {
        let mut whole = Message::default();
        let no_links = vec![Message::default()];
        for (field, table) in [
            (1, &self.mappings),
            (2, &self.locations),
            (3, &self.functions),
            (4, &no_links),
        ] {
            table.iter().for_each(|entry| whole.message(field, entry));
        }
        self.strings.all().for_each(|entry| whole.text(5, entry));
        for (field, table) in [(6, &self.attributes), (7, &self.stacks)] {
            table.iter().for_each(|entry| whole.message(field, entry));
        }
        whole
    }
}

/// The convention's words for kinds of frames.
fn frame_type(kind: FrameKind) -> Option<&'static str> {
    match kind {
        FrameKind::Kernel => Some("kernel"),
        FrameKind::User | FrameKind::Inlined => Some("native"),
        FrameKind::Jit | FrameKind::Task => None,
    }
}

/// A text as an `AnyValue`.
fn text(text: &str) -> Message {
    let mut value = Message::default();
    value.text(1, text);
    value
}
