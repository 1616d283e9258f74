//! The plan of a recording: units of sources that are switched together.

mod tracepoints;

use tracepoints::{block_io, calls, locks};

use super::ladder;
use super::notes::Note;
use super::role::{RingClass, Role, Slot};
use super::source::{Access, Fault, Source};
use super::{CpuStacks, Mode, Options};
use crate::tracefs::Tracefs;
use pagewise_formats::perf_data::TracingData;
use std::time::Duration;

/// When a unit is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// From the moment it is opened.
    AtOnce,
    /// From the program's exec, or from the end of attaching.
    WithProgram,
    /// When its turn comes; until then it is open but off.
    Later,
    /// When its turn comes; it is opened then, and closed afterwards.
    OnTurn,
    /// Never.
    Never,
}

/// What an event watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// A thread and those that it starts. The kernel removes the event from a CPU and puts it back
    /// at each context switch, and copies the events of all CPUs for each thread that is born.
    Threads,
    /// Everything that a CPU runs; records of others are dropped before they are written.
    Machine,
}

/// Sources that are switched together: a group of perf events, the first one leading.
#[derive(Clone)]
pub(super) struct Unit {
    pub role: Role,
    pub sources: Vec<Source>,
    pub start: Start,
    pub reach: Reach,
}

/// Everything that will be recorded, the most important unit first.
#[derive(Default)]
pub(super) struct Plan {
    pub units: Vec<Unit>,
    /// The first slot, used once, then the cycle; empty if nothing takes turns.
    pub opening: Option<Slot>,
    pub cycle: Vec<Slot>,
    /// Whether turns may watch whole CPUs.
    pub may_watch_all: bool,
    pub tracing_data: Option<TracingData>,
}

/// The first slot is short, so that a program of a few milliseconds has both stacks and latencies.
const OPENING: Duration = Duration::from_millis(2);
/// A latency window: some 3,000 faults of a program that does nothing else.
const WINDOW: Duration = Duration::from_millis(5);
/// Faults are sampled for this long, ...
const SAMPLING: Duration = Duration::from_millis(20);
/// ... and then, in a storm, left alone for this long. An open source of faults, sampling or not,
/// costs each fault of the program 20 to 90 ns, a closed one nothing; [`ladder`] relies on this
/// ratio.
const REST: Duration = Duration::from_millis(105);
/// Samples of CPU time per second at first. One costs the program some 3 µs, on a virtual machine up
/// to 20.
const DENSE_CPU: u64 = 1_999;
/// Most copies of stacks per second of a busy CPU: 2.4 MB, and as many samples as `doctor` takes. More
/// samples than that are by frame pointers.
const MOST_COPIES: u64 = 299;
/// Full mode: call chains for a tenth of the time, which is cheaper than chains on every fault.
const FULL_PAIRED: Duration = Duration::from_millis(36);
const FULL_CHAINS: Duration = Duration::from_millis(4);
impl Plan {
    /// The plan for these options under this access. `tracefs` is called only when needed.
    pub fn new(
        options: &Options,
        access: Access,
        tracefs: impl FnOnce() -> Result<Tracefs, crate::tracefs::Error>,
        notes: &mut Vec<Note>,
    ) -> Self {
        let mut plan = Self {
            may_watch_all: access.machine,
            ..Self::default()
        };
        let lifetimes = vec![Source::lifetimes(access)];
        plan.add_shared(Role::Lifetimes, Start::AtOnce, lifetimes, access);
        if let Some(frequency) = options.cpu {
            plan.add_cpu(frequency, options, access);
        }
        match options.mode {
            _ if !options.faults => {}
            Mode::Sampled => plan.add_sampled(options, access),
            Mode::Full => plan.add_full(access),
        }
        if options.off_cpu {
            let source = Source::switches(access);
            plan.add(Role::OffCpu, Start::WithProgram, vec![source]);
        }
        if options.mappings {
            // Full mode records each major fault anyway.
            let source = match options.faults && options.mode == Mode::Sampled {
                true => Source::mappings_and_majors(access),
                false => Source::mappings(access),
            };
            plan.add_shared(Role::Mappings, Start::WithProgram, vec![source], access);
        }
        if options.calls || options.locks || options.block_io {
            plan.add_tracepoints(options, access, tracefs(), notes);
        }
        plan
    }

    /// Opens everything at once and closes nothing: with very many threads, opening takes longer
    /// than a turn.
    pub fn keep_open(&mut self) {
        self.units
            .retain(|unit| !matches!(unit.role, Role::FaultRing | Role::Startup));
        if let Some(slot) = &mut self.opening
            && slot.role == Role::Startup
        {
            slot.role = Role::Sampled(0);
        }
        for unit in &mut self.units {
            if unit.role == Role::Sampled(0) {
                unit.start = Start::WithProgram;
            }
            if unit.start == Start::OnTurn {
                unit.start = Start::Later;
            }
        }
    }

    /// Takes turns with whole CPUs: for more threads than can be opened within a turn.
    pub fn watch_all(&mut self) {
        for unit in &mut self.units {
            if unit.role.ring() == RingClass::Faults {
                unit.reach = Reach::Machine;
                if unit.start == Start::WithProgram {
                    unit.start = Start::AtOnce;
                }
            }
        }
    }

    /// Whether units are opened while the program runs.
    pub fn has_turns(&self) -> bool {
        self.units.iter().any(|unit| unit.start == Start::OnTurn)
    }

    /// Whether the unit is open but off at first.
    pub fn has_later(&self, role: Role) -> bool {
        let is_it = |unit: &Unit| unit.role == role && unit.start == Start::Later;
        self.units.iter().any(is_it)
    }

    /// Takes a unit that cannot be opened out of the turns. A single remaining unit goes on alone.
    pub fn forget(&mut self, role: Role) {
        self.cycle.retain(|slot| slot.role != role);
        if self.cycle.len() < 2 {
            self.cycle.clear();
            self.opening = None;
        }
    }

    fn add(&mut self, role: Role, start: Start, sources: Vec<Source>) {
        self.units.push(Unit {
            role,
            sources,
            start,
            reach: Reach::Threads,
        });
    }

    /// A timer for each thread is set and cancelled at each context switch, which makes a storm of
    /// switches three times as expensive, and it never fires in a process that lives shorter than
    /// its period. A timer for each CPU has neither problem. Where each sample copies the stack,
    /// others' copies would be too much to throw away.
    fn add_cpu(&mut self, frequency: u64, options: &Options, access: Access) {
        let stacks = options.stacks_of_cpu();
        let adapts = stacks == CpuStacks::CopiesWhereChainsBreak && frequency <= MOST_COPIES;
        if stacks == CpuStacks::Copies || !access.machine {
            let copied = stacks == CpuStacks::Copies;
            let source = Source::cpu(frequency, copied, access);
            if !adapts {
                return self.add(Role::Cpu, Start::WithProgram, vec![source]);
            }
            self.add(Role::Cpu, Start::Later, vec![source]);
            let source = Source::cpu(frequency, true, access);
            return self.add(Role::CpuStacks, Start::WithProgram, vec![source]);
        }
        let mut add = |role, frequency, copied, start| {
            let source = Source::cpu(frequency, copied, access);
            self.units.push(Unit {
                role,
                sources: vec![source.passing_over_idleness()],
                start,
                reach: Reach::Machine,
            });
        };
        let at_once = |is_first| {
            if is_first {
                Start::AtOnce
            } else {
                Start::Later
            }
        };
        let is_dense = options.cpu_dense_at_first;
        add(Role::Cpu, frequency, false, at_once(!is_dense && !adapts));
        if adapts {
            add(Role::CpuStacks, frequency, true, at_once(!is_dense));
        }
        match (is_dense, adapts) {
            (true, true) => add(Role::DenseCpuStacks, DENSE_CPU, true, Start::AtOnce),
            (true, false) => add(Role::DenseCpu, DENSE_CPU, false, Start::AtOnce),
            (false, _) => {}
        }
    }

    /// Records of whole CPUs where that is allowed; of the program's threads otherwise. The events
    /// of a thread are removed from a CPU and put back at each context switch, which doubles the
    /// cost of a storm of switches for some fifteen tracepoints, and copied for each new thread,
    /// which doubles the cost of a storm of threads; those of a CPU stay.
    fn add_shared(&mut self, role: Role, start: Start, sources: Vec<Source>, access: Access) {
        if !access.machine {
            return self.add(role, start, sources);
        }
        let start = match start {
            Start::WithProgram => Start::AtOnce,
            start => start,
        };
        self.units.push(Unit {
            role,
            sources,
            start,
            reach: Reach::Machine,
        });
    }

    fn add_sampled(&mut self, options: &Options, access: Access) {
        self.add_fault_ring(access);
        let first = match options.period {
            Some(period) => {
                let source = match options.period_stacks && options.dwarf_stacks {
                    true => Source::fault_with_stack(period, access),
                    false => Source::fault_with_chain(Fault::Entry, period, access),
                };
                self.add(Role::Sampled(0), Start::WithProgram, vec![source]);
                Role::Sampled(0)
            }
            None => {
                self.add_ladder(options.dwarf_stacks, access);
                Role::Startup
            }
        };
        if options.latency {
            self.add(Role::Paired, Start::OnTurn, pair(access));
            self.cycle.push(Slot::new(Role::Paired, WINDOW));
        }
        // A fixed period means each n-th fault, without rests.
        let rest = options
            .period
            .is_none()
            .then_some(Slot::new(Role::Rest, REST));
        for _ in 0..4 {
            self.cycle.push(Slot::new(Role::Sampled(0), SAMPLING));
            self.cycle.extend(rest);
        }
        self.opening = Some(Slot::new(first, OPENING));
        if !self.cycle.iter().any(|slot| slot.role != first) {
            self.cycle.clear();
            self.opening = None;
        }
    }

    fn add_fault_ring(&mut self, access: Access) {
        let sources = vec![Source::nothing(access)];
        self.add_shared(Role::FaultRing, Start::Never, sources, access);
    }

    /// Call chains alone at first, when a program may take many more faults than can be predicted;
    /// then with copies of the stack, because most faults are taken in libraries without frame
    /// pointers.
    fn add_ladder(&mut self, stacks: bool, access: Access) {
        let startup = Source::fault_with_chain(Fault::Entry, 1, access);
        self.add(Role::Startup, Start::WithProgram, vec![startup]);
        for (rung, period) in (0..).zip(ladder::PERIODS) {
            let source = if stacks && rung >= ladder::COPIES {
                Source::fault_with_stack(period, access)
            } else {
                Source::fault_with_chain(Fault::Entry, period, access)
            };
            self.add(Role::Sampled(rung), Start::OnTurn, vec![source]);
        }
    }

    fn add_full(&mut self, access: Access) {
        self.add_fault_ring(access);
        let mut chains = pair(access);
        chains[0] = Source::fault_with_chain(Fault::Entry, 1, access);
        self.add(Role::PairedChains, Start::WithProgram, chains);
        self.add(Role::Paired, Start::Later, pair(access));
        self.opening = Some(Slot::new(Role::PairedChains, OPENING));
        self.cycle.push(Slot::new(Role::Paired, FULL_PAIRED));
        self.cycle.push(Slot::new(Role::PairedChains, FULL_CHAINS));
    }

    fn add_tracepoints(
        &mut self,
        options: &Options,
        access: Access,
        tracefs: Result<Tracefs, crate::tracefs::Error>,
        notes: &mut Vec<Note>,
    ) {
        let tracefs = match tracefs {
            Ok(tracefs) => tracefs,
            Err(error) => return note_missing(options, &error.to_string(), notes),
        };
        let mut used = Vec::new();
        if options.calls {
            match calls(&tracefs, options, access, &mut used) {
                Ok(sources) => self.add_shared(Role::Calls, Start::WithProgram, sources, access),
                Err(reason) => notes.push(Note::NoCalls { reason }),
            }
        }
        if options.locks {
            match locks(&tracefs, access, &mut used) {
                Ok(sources) => self.add_shared(Role::Locks, Start::WithProgram, sources, access),
                Err(reason) => notes.push(Note::NoLocks { reason }),
            }
        }
        if options.block_io {
            match block_io(&tracefs, access, &mut used) {
                Ok(sources) => self.add(Role::BlockIo, Start::WithProgram, sources),
                Err(reason) => notes.push(Note::Refused {
                    part: Role::BlockIo.describe(),
                    reason,
                }),
            }
        }
        self.tracing_data = tracefs.tracing_data(&used).ok();
    }
}

fn note_missing(options: &Options, reason: &str, notes: &mut Vec<Note>) {
    let reason = reason.to_owned();
    if options.calls {
        notes.push(Note::NoCalls {
            reason: reason.clone(),
        });
    }
    if options.block_io {
        notes.push(Note::Refused {
            part: Role::BlockIo.describe(),
            reason: reason.clone(),
        });
    }
    if options.locks {
        notes.push(Note::NoLocks { reason });
    }
}

/// Start and both ends of each fault.
fn pair(access: Access) -> Vec<Source> {
    [Fault::Entry, Fault::MinorEnd, Fault::MajorEnd]
        .map(|fault| Source::each_fault(fault, access))
        .into()
}

#[cfg(test)]
mod tests {
    use super::tracepoints::{BLAMED, ENTERED, EXITED};
    use super::*;
    use std::fs;

    const ACCESS: Access = Access {
        kernel: true,
        counts_losses: true,
        cgroups: true,
        machine: true,
    };

    fn no_tracefs() -> Result<Tracefs, crate::tracefs::Error> {
        Err(crate::tracefs::Error::NoAccess {
            path: "/sys/kernel/tracing".into(),
        })
    }

    fn roles(plan: &Plan) -> Vec<Role> {
        plan.units.iter().map(|unit| unit.role).collect()
    }

    #[test]
    fn the_plan_notes_missing_tracepoints() {
        let mut notes = Vec::new();
        let plan = Plan::new(&Options::default(), ACCESS, no_tracefs, &mut notes);
        let expected = [
            Role::Lifetimes,
            Role::FaultRing,
            Role::Startup,
            Role::Sampled(0),
            Role::Sampled(1),
            Role::Sampled(2),
            Role::Sampled(3),
            Role::Sampled(4),
            Role::Paired,
            Role::Mappings,
        ];
        assert_eq!(roles(&plan), expected);
        assert!(matches!(
            notes[..],
            [Note::NoCalls { .. }, Note::NoLocks { .. }]
        ));
        assert!(notes[0].text().contains("/sys/kernel/tracing is closed"));
    }

    #[test]
    fn units_that_share_a_software_event_take_turns() {
        for mode in [Mode::Sampled, Mode::Full] {
            let options = Options {
                mode,
                ..Options::default()
            };
            let plan = Plan::new(&options, ACCESS, no_tracefs, &mut Vec::new());
            let on_from_start = plan
                .units
                .iter()
                .filter(|unit| matches!(unit.start, Start::AtOnce | Start::WithProgram))
                .filter(|unit| unit.role.ring() == RingClass::Faults);
            assert_eq!(on_from_start.count(), 1, "{mode:?}");
        }
    }

    #[test]
    fn calls_come_with_their_formats() {
        let root = tempfile::tempdir().unwrap();
        for (at, call) in ENTERED.iter().enumerate() {
            for side in ["enter", "exit"] {
                let folder = root
                    .path()
                    .join(format!("events/syscalls/sys_{side}_{call}"));
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join("id"), format!("{at}\n")).unwrap();
                fs::write(folder.join("format"), "name: x\n").unwrap();
            }
        }
        let mut notes = Vec::new();
        let tracefs = || Ok(Tracefs::at(root.path()));
        let plan = Plan::new(&Options::default(), ACCESS, tracefs, &mut notes);
        let calls = plan.units.iter().find(|unit| unit.role == Role::Calls);
        let sources = ENTERED.len() + BLAMED.len() + EXITED.len();
        assert_eq!(
            calls.map(|unit| (unit.sources.len(), unit.start, unit.reach)),
            Some((sources, Start::AtOnce, Reach::Machine))
        );
        let formats = plan.tracing_data.map(|data| data.events.len());
        assert_eq!(formats, Some(ENTERED.len() + EXITED.len()));
        assert!(matches!(notes[..], [Note::NoLocks { .. }]));
        let own = Access {
            machine: false,
            ..ACCESS
        };
        let tracefs = || Ok(Tracefs::at(root.path()));
        let plan = Plan::new(&Options::default(), own, tracefs, &mut notes);
        let is_of_threads = |unit: &Unit| unit.reach == Reach::Threads;
        assert!(plan.units.iter().all(is_of_threads));
    }
}
