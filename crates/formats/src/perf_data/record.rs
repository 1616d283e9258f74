//! Records as events of the model.

use super::cursor::{Cursor, u32_at, u64_at, until_zero};
use super::layout::{RECORD_HEADER_SIZE, kernel_record as kind, misc};
use super::sample;
use super::sources::{Layout, Sources};
use pagewise_model::address_space::FileId;
use pagewise_model::event::{CpuMode, Event, Mmap, SourceIndex};
use pagewise_model::units::Nanos;

/// A record that contradicts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Decodes a kernel record. `Ok(None)` is a known type for which the model has no event. `time` was
/// read before, to bring records in order.
pub(super) fn decode<'a>(
    sources: &Sources,
    record: &'a [u8],
    time: Nanos,
) -> Result<Option<Event<'a>>, Malformed> {
    let record_kind = u32_at(record, 0).ok_or(Malformed)?;
    if record_kind == kind::SAMPLE {
        return decode_sample(sources, record, time)
            .map(Some)
            .ok_or(Malformed);
    }
    let layout = sources.layout(sources.of_other(record)).ok_or(Malformed)?;
    let (body, trailer) = layout.split_trailer(record).ok_or(Malformed)?;
    let other = Other {
        sources,
        layout,
        misc: record_misc(record),
        body: Cursor(body),
        trailer,
        time,
    };
    let event = match record_kind {
        kind::MMAP => other.mmap(),
        kind::MMAP2 => other.mmap2(),
        kind::COMM => other.comm(),
        kind::FORK => other.fork(),
        kind::EXIT => other.exit(),
        kind::LOST => other.lost(),
        kind::LOST_SAMPLES => other.lost_samples(),
        kind::THROTTLE => Some(Event::Throttle { time, paused: true }),
        kind::UNTHROTTLE => Some(Event::Throttle {
            time,
            paused: false,
        }),
        kind::SWITCH | kind::SWITCH_CPU_WIDE => Some(other.switch()),
        kind::CGROUP => other.cgroup(),
        _ => return Ok(None),
    };
    event.map(Some).ok_or(Malformed)
}

fn decode_sample<'a>(sources: &Sources, record: &'a [u8], time: Nanos) -> Option<Event<'a>> {
    let source = sources.of_sample(record)?;
    let layout = sources.layout(source)?;
    let payload = record.get(RECORD_HEADER_SIZE..)?;
    let mut sample = sample::decode(&layout.attr, SourceIndex(source), payload)?;
    sample.time = time;
    sample.mode = match record_misc(record) & misc::CPUMODE {
        misc::KERNEL => CpuMode::Kernel,
        // Unknown is what tools write into records of their own.
        0 | misc::USER => CpuMode::User,
        _ => CpuMode::Other,
    };
    Some(Event::Sample(sample))
}

fn record_misc(record: &[u8]) -> u16 {
    let field = record.get(4..).and_then(<[u8]>::first_chunk);
    field.map_or(0, |&bytes| u16::from_le_bytes(bytes))
}

/// A record that is not a sample, split into its parts.
struct Other<'s, 'a> {
    sources: &'s Sources,
    layout: &'s Layout,
    misc: u16,
    body: Cursor<'a>,
    trailer: &'a [u8],
    time: Nanos,
}

/// The build id in a mapping record's 24 bytes for it; `None` if they hold device and inode. Linux
/// marks records as having a build id when another observer asked for one
/// (`perf_event_mmap_output()`, kernel/events/core.c).
fn build_id(identity: &[u8]) -> Option<&[u8]> {
    let (front, rest) = identity.split_at_checked(4)?;
    let [size, 0, 0, 0] = front else { return None };
    let (id, padding) = rest.split_at_checked(usize::from(*size))?;
    padding.iter().all(|&byte| byte == 0).then_some(id)
}

/// Device and inode in a mapping record's 24 bytes for them; `None` where there is no file.
fn file_id(identity: &[u8]) -> Option<FileId> {
    let device = (u32_at(identity, 0)?, u32_at(identity, 4)?);
    let inode = u64_at(identity, 8).filter(|&inode| inode != 0)?;
    Some(FileId { device, inode })
}

impl<'a> Other<'_, 'a> {
    fn mmap(mut self) -> Option<Event<'a>> {
        let mut mmap = self.mmap_front()?;
        mmap.path = until_zero(self.body.0);
        Some(Event::Mmap(mmap))
    }

    fn mmap2(mut self) -> Option<Event<'a>> {
        let mut mmap = self.mmap_front()?;
        let identity = self.body.take(24)?;
        mmap.protection = self.body.u32()?;
        mmap.flags = self.body.u32()?;
        mmap.path = until_zero(self.body.0);
        if self.misc & misc::MMAP_BUILD_ID != 0 {
            mmap.build_id = build_id(identity);
        } else {
            mmap.file = file_id(identity);
        }
        Some(Event::Mmap(mmap))
    }

    /// The fields with which both kinds of mapping begin.
    fn mmap_front(&mut self) -> Option<Mmap<'a>> {
        Some(Mmap {
            pid: self.body.i32()?,
            tid: self.body.i32()?,
            time: self.time,
            start: self.body.u64()?,
            length: self.body.u64()?,
            file_offset: self.body.u64()?,
            protection: 0,
            flags: 0,
            path: &[],
            build_id: None,
            file: None,
            synthetic: self.is_synthetic(),
            executable: self.misc & misc::MMAP_DATA == 0,
        })
    }

    /// Synthesised by the recorder: the kernel's own records always have a time, and an id where
    /// there is a field for one.
    fn is_synthetic(&self) -> bool {
        self.layout.trailer > 0
            && (self.time == Nanos(0) || self.layout.trailer_id(self.trailer) == Some(0))
    }

    fn comm(mut self) -> Option<Event<'a>> {
        Some(Event::Comm {
            pid: self.body.i32()?,
            tid: self.body.i32()?,
            time: self.time,
            name: until_zero(self.body.0),
            exec: self.misc & misc::COMM_EXEC != 0,
        })
    }

    fn fork(mut self) -> Option<Event<'a>> {
        let (pid, parent_pid) = (self.body.i32()?, self.body.i32()?);
        let (tid, parent_tid) = (self.body.i32()?, self.body.i32()?);
        Some(Event::Fork {
            pid,
            tid,
            parent_pid,
            parent_tid,
            time: self.time,
        })
    }

    fn exit(mut self) -> Option<Event<'a>> {
        let (pid, _parent) = (self.body.i32()?, self.body.i32()?);
        Some(Event::Exit {
            pid,
            tid: self.body.i32()?,
            time: self.time,
        })
    }

    fn lost(mut self) -> Option<Event<'a>> {
        let id = self.body.u64()?;
        Some(Event::Lost {
            count: self.body.u64()?,
            time: self.time,
            source: self.sources.by_id(id).map(SourceIndex),
        })
    }

    fn lost_samples(mut self) -> Option<Event<'a>> {
        let id = self.layout.trailer_id(self.trailer);
        Some(Event::Lost {
            count: self.body.u64()?,
            time: self.time,
            source: id.and_then(|id| self.sources.by_id(id)).map(SourceIndex),
        })
    }

    fn cgroup(mut self) -> Option<Event<'a>> {
        Some(Event::Cgroup {
            time: self.time,
            id: self.body.u64()?,
            path: until_zero(self.body.0),
        })
    }

    fn switch(self) -> Event<'a> {
        let (pid, tid) = self.layout.trailer_ids(self.trailer);
        Event::Switch {
            pid,
            tid,
            time: self.time,
            out: self.misc & misc::SWITCH_OUT != 0,
            preempted: self.misc & misc::SWITCH_OUT_PREEMPT != 0,
        }
    }
}
