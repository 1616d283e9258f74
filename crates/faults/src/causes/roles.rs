//! The meaning of each event source of a recording for the attribution.

use super::syscalls::MmCall;
use pagewise_model::event::{EventKind, EventSource, Sampling};
use pagewise_model::recording::Sidecar;

/// The role of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Each fault, at its begin.
    EveryFault,
    /// Some faults, each standing for its period, which may be 1 for a while: an adaptive recorder
    /// starts with each fault and samples more rarely as they come faster. Their ends are not
    /// recorded, unlike those of windows.
    SampledFault,
    /// Each fault at its begin, but only during latency windows.
    WindowFault,
    /// The end of a fault's handling.
    FaultEnd {
        /// It needed I/O.
        major: bool,
    },
    /// Some of the major faults: where programs wait for files.
    SampledMajor,
    /// The error code of the fault that follows on the same thread.
    ErrorCode,
    /// Entry into a system call.
    Enter(MmCall),
    /// Entry into some system calls, only for their call chains.
    Blame(MmCall),
    /// Return from a system call.
    Exit(MmCall),
    /// A thread starts to wait for a lock.
    LockWait,
    /// It has the lock.
    LockTaken,
    /// Unrelated to faults.
    Other,
}

/// How a recording shows faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coverage {
    /// Each one.
    Every,
    /// A sample.
    Sampled,
}

/// Roles of all sources, by their index.
#[derive(Clone, Debug)]
pub(super) struct Roles {
    by_source: Vec<(Role, bool)>,
    pub(super) coverage: Coverage,
    /// Whether releases of memory are recorded.
    pub(super) sees_releases: bool,
    /// Whether new mappings are recorded by their calls, with exact ranges and flags.
    pub(super) sees_mmap: bool,
    /// Whether ends of faults are recorded.
    pub(super) sees_ends: bool,
    /// Whether some major faults are recorded all the time.
    pub(super) samples_majors: bool,
    /// Whether faults raised inside the kernel are missing.
    pub(super) user_only: bool,
}

impl Roles {
    pub(super) fn new(sources: &[EventSource], sidecar: &Sidecar) -> Self {
        let sampled = sources
            .iter()
            .any(|source| source.kind == EventKind::PageFault && is_sampled(source));
        let has_begin = sources
            .iter()
            .any(|source| source.kind == EventKind::PageFault);
        let has_codes = sources.iter().any(is_page_fault_tracepoint);
        let standing = Standing {
            sampled,
            has_begin,
            has_codes,
        };
        let by_source: Vec<(Role, bool)> = sources
            .iter()
            .map(|source| (standing.role(source), source.has_callchain))
            .collect();
        Self {
            coverage: coverage(&by_source, sources),
            sees_releases: sees_releases(&by_source) && saw_all_calls(sidecar),
            sees_mmap: [Role::Enter(MmCall::Mmap), Role::Exit(MmCall::Mmap)]
                .iter()
                .all(|wanted| by_source.iter().any(|(role, _)| role == wanted)),
            sees_ends: by_source
                .iter()
                .any(|(role, _)| matches!(role, Role::FaultEnd { major: false })),
            samples_majors: by_source
                .iter()
                .any(|(role, _)| *role == Role::SampledMajor),
            user_only: user_only(&by_source, sources),
            by_source,
        }
    }

    /// Role of a source, and whether its samples have call chains.
    pub(super) fn get(&self, source: u16) -> (Role, bool) {
        self.by_source
            .get(usize::from(source))
            .copied()
            .unwrap_or((Role::Other, false))
    }
}

fn coverage(roles: &[(Role, bool)], sources: &[EventSource]) -> Coverage {
    let sampled = roles
        .iter()
        .zip(sources)
        .any(|((role, _), source)| *role == Role::SampledFault && is_sampled(source));
    if sampled {
        Coverage::Sampled
    } else {
        Coverage::Every
    }
}

/// Releases are recorded if each of these calls is: if one were missing, a page that was freed by
/// that route would be misclassified.
fn sees_releases(roles: &[(Role, bool)]) -> bool {
    [MmCall::Munmap, MmCall::Brk, MmCall::Madvise]
        .into_iter()
        .all(|call| roles.iter().any(|(role, _)| *role == Role::Enter(call)))
}

/// Share of the run during which system calls must be recorded for the record to count as complete.
const COMPLETE: f64 = 0.98;

/// Whether system calls were recorded all the time. A recording of another tool, which has no
/// windows, counts as complete.
fn saw_all_calls(sidecar: &Sidecar) -> bool {
    let collection = &sidecar.collection;
    if collection.mode.is_empty() {
        return true;
    }
    let windows = &collection.call_windows;
    let covered: f64 = windows
        .iter()
        .map(|&(from, to)| (to - from).as_secs_f64())
        .sum();
    // Share of the time from exec to the end. The program's elapsed time is longer by what comes
    // before and after, which matters in a short run.
    let observed = match (
        collection.fault_windows.first(),
        collection.fault_windows.last(),
    ) {
        (Some(&(from, _)), Some(&(_, to))) => (to - from).as_secs_f64(),
        _ => sidecar.cost.wall.as_secs_f64(),
    };
    covered > 0.0 && covered >= COMPLETE * observed
}

fn user_only(roles: &[(Role, bool)], sources: &[EventSource]) -> bool {
    let mut counting = roles
        .iter()
        .zip(sources)
        .filter(|((role, _), _)| matches!(role, Role::EveryFault | Role::SampledFault))
        .map(|(_, source)| source)
        .peekable();
    counting.peek().is_some() && counting.all(|source| source.user_only)
}

fn is_sampled(source: &EventSource) -> bool {
    source.sampling != Sampling::Every(1)
}

fn is_page_fault_tracepoint(source: &EventSource) -> bool {
    matches!(&source.kind, EventKind::Tracepoint(name) if name.starts_with("exceptions:page_fault_"))
}

/// The properties of the whole recording that determine the role of each source.
#[derive(Clone, Copy)]
struct Standing {
    sampled: bool,
    has_begin: bool,
    has_codes: bool,
}

impl Standing {
    fn role(self, source: &EventSource) -> Role {
        match &source.kind {
            EventKind::PageFault if is_sampled(source) => Role::SampledFault,
            EventKind::PageFault if self.sampled && source.has_callchain => Role::SampledFault,
            EventKind::PageFault if self.sampled => Role::WindowFault,
            EventKind::PageFault => Role::EveryFault,
            EventKind::MinorFault => self.end(source, false),
            EventKind::MajorFault => self.end(source, true),
            EventKind::Tracepoint(_) if is_page_fault_tracepoint(source) => {
                if self.has_begin {
                    Role::ErrorCode
                } else {
                    self.alone(source)
                }
            }
            EventKind::Tracepoint(name) => tracepoint(name, is_sampled(source)),
            _ => Role::Other,
        }
    }

    /// Minor and major faults mark the end of a fault whose begin is recorded; alone they are the
    /// faults themselves.
    fn end(self, source: &EventSource, major: bool) -> Role {
        match (self.has_begin || self.has_codes, is_sampled(source)) {
            (true, false) => Role::FaultEnd { major },
            (true, true) if major => Role::SampledMajor,
            (true, true) => Role::Other,
            (false, _) => self.alone(source),
        }
    }

    fn alone(self, source: &EventSource) -> Role {
        if is_sampled(source) {
            Role::SampledFault
        } else {
            Role::EveryFault
        }
    }
}

/// A second, sampled source of the same tracepoint has call chains for some of the calls.
fn tracepoint(name: &str, sampled: bool) -> Role {
    let entered = name
        .strip_prefix("syscalls:sys_enter_")
        .and_then(MmCall::named);
    if let Some(call) = entered {
        return if sampled {
            Role::Blame(call)
        } else {
            Role::Enter(call)
        };
    }
    if let Some(call) = name
        .strip_prefix("syscalls:sys_exit_")
        .and_then(MmCall::named)
    {
        return Role::Exit(call);
    }
    match name {
        "lock:contention_begin" => Role::LockWait,
        "lock:contention_end" => Role::LockTaken,
        _ => Role::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::tests::sidecar;
    use pagewise_model::units::Nanos;

    fn roles(sources: &[EventSource]) -> Roles {
        Roles::new(sources, &sidecar())
    }

    fn source(kind: EventKind, sampling: Sampling) -> EventSource {
        EventSource {
            name: format!("{kind:?}"),
            kind,
            sampling,
            has_callchain: false,
            user_only: false,
            has_switches: false,
        }
    }

    #[test]
    fn beside_a_sampled_source_the_exact_one_is_a_window() {
        let roles = roles(&[
            source(EventKind::PageFault, Sampling::Frequency(1000)),
            source(EventKind::PageFault, Sampling::Every(1)),
            source(EventKind::MinorFault, Sampling::Every(1)),
        ]);
        assert_eq!(roles.get(0).0, Role::SampledFault);
        assert_eq!(roles.get(1).0, Role::WindowFault);
        assert_eq!(roles.get(2).0, Role::FaultEnd { major: false });
        assert_eq!(roles.coverage, Coverage::Sampled);
    }

    #[test]
    fn the_finest_of_several_sampled_sources_is_no_latency_window() {
        let with_chain = |n| EventSource {
            has_callchain: true,
            ..source(EventKind::PageFault, Sampling::Every(n))
        };
        let window = source(EventKind::PageFault, Sampling::Every(1));
        let roles = roles(&[with_chain(1), with_chain(61), window]);
        let all: Vec<Role> = (0..3).map(|index| roles.get(index).0).collect();
        assert_eq!(
            all,
            [Role::SampledFault, Role::SampledFault, Role::WindowFault]
        );
    }

    #[test]
    fn a_lone_tracepoint_is_the_fault_itself() {
        let name = "exceptions:page_fault_user".to_owned();
        let roles = roles(&[source(EventKind::Tracepoint(name), Sampling::Every(1))]);
        assert_eq!(roles.get(0).0, Role::EveryFault);
        assert_eq!(roles.get(9).0, Role::Other);
    }

    #[test]
    fn releases_are_seen_only_with_all_three_calls() {
        let enter = |call: &str| {
            source(
                EventKind::Tracepoint(format!("syscalls:sys_enter_{call}")),
                Sampling::Every(1),
            )
        };
        assert!(!roles(&[enter("munmap"), enter("brk")]).sees_releases);
        assert!(roles(&[enter("munmap"), enter("brk"), enter("madvise")]).sees_releases);
    }

    #[test]
    fn calls_are_complete_however_short_the_run() {
        let mut sidecar = Sidecar::default();
        sidecar.collection.mode = "sampled".into();
        sidecar.cost.wall = Nanos(13_000_000);
        sidecar.collection.fault_windows = vec![(Nanos(100), Nanos(12_000_100))];
        sidecar.collection.call_windows = vec![(Nanos(100), Nanos(12_000_100))];
        assert!(saw_all_calls(&sidecar));
        sidecar.collection.call_windows = vec![(Nanos(100), Nanos(11_700_100))];
        assert!(!saw_all_calls(&sidecar), "paused for 2.5 %");
        sidecar.collection.call_windows.clear();
        assert!(!saw_all_calls(&sidecar));
        sidecar.collection.fault_windows.clear();
        assert!(!saw_all_calls(&sidecar));
    }
}
