//! `struct perf_event_attr`: how an event source was set up.

use super::cursor::{u32_at, u64_at};
use super::layout::{ATTR_SIZE_VER0, read_format, sample_type};
use pagewise_model::event::{EventKind, EventSource, Sampling};

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;

const FLAG_INHERIT: u64 = 1 << 1;
const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
const FLAG_FREQ: u64 = 1 << 10;
const FLAG_SAMPLE_ID_ALL: u64 = 1 << 18;
const FLAG_CONTEXT_SWITCH: u64 = 1 << 26;
/// `defer_callchain` and `defer_output` (Linux 6.19).
const FLAGS_DEFER: u64 = 3 << 38;

/// `enum perf_sw_ids`, by number, in perf's spelling.
const SOFTWARE_NAMES: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

/// `enum perf_hw_id`, by number, in perf's spelling.
const HARDWARE_NAMES: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

/// The fields that decide how records look and what they mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attr {
    pub kind: u32,
    pub config: u64,
    /// A period, or a frequency if the flag says so.
    pub sample_period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    pub branch_sample_type: u64,
    pub sample_regs_user: u64,
    pub sample_regs_intr: u64,
}

impl Attr {
    /// Parses an attribute of any published size; fields missing from an old one are zero.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < ATTR_SIZE_VER0 {
            return None;
        }
        let stated = usize::try_from(u32_at(bytes, 4)?).ok()?;
        let bytes = &bytes[..bytes.len().min(stated.max(ATTR_SIZE_VER0))];
        let word = |offset| u64_at(bytes, offset).unwrap_or(0);
        Some(Self {
            kind: u32_at(bytes, 0)?,
            config: word(8),
            sample_period: word(16),
            sample_type: word(24),
            read_format: word(32),
            flags: word(40),
            branch_sample_type: word(72),
            sample_regs_user: word(80),
            sample_regs_intr: word(96),
        })
    }

    pub fn has(&self, sample_type: u64) -> bool {
        self.sample_type & sample_type != 0
    }

    pub fn sample_id_all(&self) -> bool {
        self.flags & FLAG_SAMPLE_ID_ALL != 0
    }

    pub fn is_tracepoint(&self) -> bool {
        self.kind == TYPE_TRACEPOINT
    }

    /// Whether samples contain the counts of the event's whole group.
    pub fn reads_group(&self) -> bool {
        self.has(sample_type::READ) && self.read_format & read_format::GROUP != 0
    }

    /// Whether each thread that inherits the event counts for itself, under the same id
    /// (`evsel__attr_has_per_thread_sample_period`, tools/perf/util/evsel.c).
    pub fn counts_per_thread(&self) -> bool {
        self.has(sample_type::READ) && self.flags & FLAG_INHERIT != 0
    }

    /// Whether user stacks are in records of their own.
    pub fn defers_callchains(&self) -> bool {
        self.flags & FLAGS_DEFER != 0
    }

    /// Whether it is never sampled itself (`evsel__config_leader_sampling`, tools/perf/util/record.c).
    fn is_read_with_leader(&self) -> bool {
        self.reads_group() && self.sample_period == 0
    }

    /// How many events a sample stands for if it has no period of its own.
    pub fn fixed_period(&self) -> u64 {
        if self.flags & FLAG_FREQ != 0 {
            1
        } else {
            self.sample_period.max(1)
        }
    }

    /// perf's name, where the file gives none.
    pub fn default_name(&self) -> String {
        let index = usize::try_from(self.config & 0xffff_ffff).unwrap_or(usize::MAX);
        let known = match self.kind {
            TYPE_HARDWARE => HARDWARE_NAMES.get(index),
            TYPE_SOFTWARE => SOFTWARE_NAMES.get(index),
            _ => None,
        };
        known.map_or_else(
            || format!("type {} config {:#x}", self.kind, self.config),
            |&name| name.to_owned(),
        )
    }

    /// The model's view of this source under `name`.
    pub fn source(&self, name: &str) -> EventSource {
        EventSource {
            name: name.to_owned(),
            // The count of an event that is read with another one shows how many there were, but
            // not where.
            kind: match self.is_read_with_leader() {
                true => EventKind::Other(name.to_owned()),
                false => self.event_kind(name),
            },
            sampling: if self.is_read_with_leader() {
                Sampling::WithLeader
            } else if self.flags & FLAG_FREQ != 0 {
                Sampling::Frequency(self.sample_period)
            } else {
                Sampling::Every(self.sample_period.max(1))
            },
            has_callchain: self.has(sample_type::CALLCHAIN),
            user_only: self.flags & FLAG_EXCLUDE_KERNEL != 0,
            has_switches: self.flags & FLAG_CONTEXT_SWITCH != 0,
        }
    }

    fn event_kind(&self, name: &str) -> EventKind {
        match (self.kind, self.config) {
            (TYPE_SOFTWARE, 0 | 1) => EventKind::Cpu,
            (TYPE_SOFTWARE, 2) => EventKind::PageFault,
            (TYPE_SOFTWARE, 5) => EventKind::MinorFault,
            (TYPE_SOFTWARE, 6) => EventKind::MajorFault,
            (TYPE_SOFTWARE, 9) => EventKind::Dummy,
            // The upper half names the PMU on machines with two kinds of cores.
            (TYPE_HARDWARE, config) if matches!(config & 0xffff_ffff, 0 | 9) => EventKind::Cpu,
            (TYPE_TRACEPOINT, _) => EventKind::Tracepoint(name.to_owned()),
            _ if name
                .split([':', '/'])
                .any(|part| part == "cycles" || part == "cpu-cycles") =>
            {
                EventKind::Cpu
            }
            _ => EventKind::Other(name.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(kind: u32, config: u64) -> Attr {
        Attr {
            kind,
            config,
            ..Attr::default()
        }
    }

    #[test]
    fn numbers_become_kinds() {
        let kind = |kind, config, name: &str| attr(kind, config).source(name).kind;
        assert_eq!(kind(1, 2, "page-faults"), EventKind::PageFault);
        assert_eq!(kind(1, 5, "minor-faults"), EventKind::MinorFault);
        assert_eq!(kind(1, 6, "major-faults"), EventKind::MajorFault);
        assert_eq!(kind(1, 9, "dummy:HG"), EventKind::Dummy);
        assert_eq!(kind(1, 0, "cpu-clock"), EventKind::Cpu);
        assert_eq!(kind(0, 7 << 32, "cpu_core/cycles/"), EventKind::Cpu);
        assert_eq!(
            kind(2, 900, "syscalls:sys_enter_brk"),
            EventKind::Tracepoint("syscalls:sys_enter_brk".into())
        );
        assert_eq!(
            kind(0, 1, "instructions"),
            EventKind::Other("instructions".into())
        );
    }

    #[test]
    fn an_old_attribute_leaves_new_fields_zero() {
        let mut bytes = vec![0xff; 128];
        bytes[4..8].copy_from_slice(&64_u32.to_le_bytes());
        let attr = Attr::parse(&bytes).expect("long enough");
        assert_eq!((attr.branch_sample_type, attr.sample_regs_intr), (0, 0));
        assert_eq!(attr.sample_type, u64::MAX);
        assert_eq!(Attr::parse(&bytes[..63]), None);
    }
}
