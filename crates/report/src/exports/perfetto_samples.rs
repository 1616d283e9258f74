//! A profile's samples as a Perfetto trace (protos/perfetto/trace/trace.proto of perfetto v50), as
//! the profiler `traced_perf` writes them: `ui.perfetto.dev` draws a track of samples for each
//! thread and a flame graph of the selection.
//!
//! ```text
//! TracePacket { process_tree = 2, timestamp = 8, trusted_packet_sequence_id = 10,
//!               interned_data = 12, sequence_flags = 13, perf_sample = 66 }
//! ProcessTree { processes = 1 { pid = 1, ppid = 2, cmdline = 3 }, threads = 2 { tid = 1, name = 2, tgid = 3 } }
//! InternedData { function_names = 5, frames = 6, callstacks = 7, mapping_paths = 17, mappings = 19 }
//! InternedString { iid = 1, str = 2 }   Mapping { iid = 1, path_string_ids = 7 }
//! Frame { iid = 1, function_name_id = 2, mapping_id = 3 }
//! Callstack { iid = 1, frame_ids = 2 (outermost first) }
//! PerfSample { cpu = 1, pid = 2, tid = 3, callstack_iid = 4, timebase_count = 6 }
//! ```

use super::protobuf::Message;
use pagewise_model::profile::{NO_CPU, NodeId, Profile, ProfileThread};
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

const SEQUENCE: u64 = 1;
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

/// Writes the samples of one event.
///
/// # Errors
/// When `out` can't be written.
pub fn write(profile: &Profile, event: u16, out: &mut impl Write) -> io::Result<()> {
    packet(&threads(profile), out)?;
    packet(&names(profile), out)?;
    let mut known: HashMap<NodeId, u64> = HashMap::new();
    let mut count = 0_u64;
    for sample in profile
        .samples
        .iter()
        .filter(|sample| sample.event == event)
    {
        let mut whole = sequence(NEEDS_STATE);
        whole.number(8, profile.start.0.saturating_add(sample.time));
        let next = known.len() as u64 + 1;
        let stack = *known.entry(sample.stack).or_insert(next);
        if stack == next {
            whole.message(12, &callstack(profile, sample.stack, stack));
        }
        let (pid, tid) = ids(profile.threads.get(sample.thread as usize));
        count = count.saturating_add(sample.weight);
        let mut of = Message::default();
        if sample.cpu != NO_CPU {
            of.number(1, sample.cpu.into());
        }
        of.number(2, pid);
        of.number(3, tid);
        of.number(4, stack);
        of.number(6, count);
        whole.message(66, &of);
        packet(&whole, out)?;
    }
    out.flush()
}

fn packet(packet: &Message, out: &mut impl Write) -> io::Result<()> {
    let mut framed = Message::default();
    framed.message(1, packet);
    out.write_all(framed.bytes_so_far())
}

fn sequence(flags: u64) -> Message {
    let mut packet = Message::default();
    packet.number(10, SEQUENCE);
    packet.number(13, flags);
    packet
}

/// Process and thread id; if the process is not known, each thread counts as a process.
fn ids(thread: Option<&ProfileThread>) -> (u64, u64) {
    let id = |id: i32| u64::try_from(id).ok();
    let tid = thread.and_then(|thread| id(thread.tid)).unwrap_or(0);
    let pid = thread.and_then(|thread| id(thread.pid)).unwrap_or(tid);
    (pid, tid)
}

fn threads(profile: &Profile) -> Message {
    let (mut tree, mut processes, mut seen) = (Message::default(), HashSet::new(), HashSet::new());
    for thread in &profile.threads {
        let (pid, tid) = ids(Some(thread));
        if processes.insert(pid) {
            let mut process = Message::default();
            process.number(1, pid);
            process.text(3, &thread.comm);
            tree.message(1, &process);
        }
        if seen.insert(tid) {
            let mut entry = Message::default();
            entry.number(1, tid);
            entry.text(2, &thread.comm);
            entry.number(3, pid);
            tree.message(2, &entry);
        }
    }
    let mut packet = sequence(0);
    packet.number(8, profile.start.0);
    packet.message(2, &tree);
    packet
}

/// Functions and files, all at the beginning.
fn names(profile: &Profile) -> Message {
    let mut interned = Message::default();
    let mut files: HashMap<&str, u64> = HashMap::new();
    for (id, frame) in (1_u64..).zip(&profile.frames) {
        let next = files.len() as u64 + 1;
        let file = *files.entry(&frame.module).or_insert(next);
        if file == next {
            interned.message(17, &string(file, &frame.module));
            let mut mapping = Message::default();
            mapping.number(1, file);
            mapping.number(7, file);
            interned.message(19, &mapping);
        }
        interned.message(5, &string(id, &frame.name));
        let mut entry = Message::default();
        entry.number(1, id);
        entry.number(2, id);
        entry.number(3, file);
        interned.message(6, &entry);
    }
    let mut packet = sequence(STATE_CLEARED | NEEDS_STATE);
    packet.message(12, &interned);
    packet
}

fn string(id: u64, text: &str) -> Message {
    let mut string = Message::default();
    string.number(1, id);
    string.text(2, text);
    string
}

fn callstack(profile: &Profile, stack: NodeId, id: u64) -> Message {
    let frames = profile.stacks.frames(stack);
    let mut frames: Vec<u64> = frames.map(|frame| u64::from(frame.0) + 1).collect();
    frames.reverse();
    let mut callstack = Message::default();
    callstack.number(1, id);
    for frame in frames {
        callstack.number(2, frame);
    }
    let mut interned = Message::default();
    interned.message(7, &callstack);
    interned
}
