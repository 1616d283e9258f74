//! The recorder's thread: moves records from the rings to the file, switches turns, and keeps costs
//! within bounds. It sleeps until a ring is partly full or something is due.

mod copies;
mod hand_over;
mod output;

use copies::Stacks;
use output::Output;

use super::account::{Account, EventCount};
use super::build_ids::BuildIds;
use super::closing;
use super::governor::Governor;
use super::ladder::Ladder;
use super::notes::Note;
use super::opening::{Opened, families_of, threads_of};
use super::plan::{Plan, Reach, Unit};
use super::role::Slot;
use super::role::{RingClass, Role};
use super::rotation::Rotation;
use super::switches::Switches;
use super::turns::Turns;
use super::{Mode, Target};
use crate::proc::{ProcRoot, family};
use crate::sys::perf_event::monotonic_now;
use crate::sys::perf_poll;
use pagewise_formats::perf_data::Writer;
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::recording::Collection;
use pagewise_model::units::Nanos;
use std::fs::File;
use std::io::{PipeReader, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::time::Duration;

/// Messages to the recorder's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// The gated program now calls exec.
    Released,
    /// End.
    Stop,
}

impl Command {
    pub fn byte(self) -> u8 {
        match self {
            Self::Released => b'r',
            Self::Stop => b's',
        }
    }
}

/// Results of the thread.
#[derive(Debug)]
pub(super) struct Drained {
    pub collection: Collection,
    pub losses: Losses,
    pub counts: Vec<EventCount>,
    pub span: Option<(u64, u64)>,
    pub writer: Writer<File>,
}

/// The thread's state.
pub(super) struct Drain {
    opened: Opened,
    /// Index of the descriptor by which each ring is polled.
    polled: Vec<usize>,
    output: Output,
    commands: PipeReader,
    account: Account,
    build_ids: BuildIds,
    losses: Losses,
    notes: Vec<Note>,
    mode: Mode,
    opening_slot: Option<Slot>,
    cycle: Vec<Slot>,
    rotation: Option<Rotation>,
    frequency: Option<u64>,
    ladder: Option<Ladder>,
    /// The role whose turn it is.
    current: Role,
    turns: Turns,
    /// When births of threads were last counted.
    births_since: Nanos,
    /// Until when many births are expected.
    storm_until: Nanos,
    /// Roles whose last turn recorded all processes.
    watching_all: Vec<Role>,
    /// Since when faults have been recorded without a rest.
    faults_since: Option<Nanos>,
    fault_windows: Vec<(Nanos, Nanos)>,
    governed: Vec<(Role, u64)>,
    governors: Vec<(Role, Governor)>,
    /// Samples of any process to be taken before CPU time is sampled less often; `None` once it is.
    dense_samples_left: Option<u64>,
    /// How stacks of CPU time are recorded now; `None` if that does not change.
    stacks: Option<Stacks>,
    /// The source of CPU time to start with is open but off, because the one before it was refused.
    cpu_is_off: bool,
    /// Whether CPU time is sampled by governed timers of threads.
    has_timers: bool,
    /// Switches of threads whose CPU time is sampled by a timer of their own.
    switches: Switches,
    running_since: Option<Nanos>,
    /// When a turn last ended far too late.
    late_at: Option<Nanos>,
    latency_windows: Vec<(Nanos, Nanos)>,
    latency_since: Option<Nanos>,
    /// The processes that the recording started from.
    watched: Vec<i32>,
    events_gone_since: Option<Nanos>,
    proc: ProcRoot,
}

/// Longest sleep: records of low rates, which stay below the rings' watermark, are written at least
/// this often.
const LONGEST_SLEEP: Nanos = Nanos(250_000_000);
/// ... and this often at first, until it is known whether call chains break.
const UNDECIDED_SLEEP: Nanos = Nanos(50_000_000);
/// If a process outlives its events by this much, the kernel detached us; it is not just ending.
const DETACHED_AFTER: Nanos = Nanos(400_000_000);
/// A program is sampled this long without a rest. A short program has no pattern from which the
/// rests could be filled in; in a long one, rests lower the overall cost of recording.
const NO_REST: Nanos = Nanos(2_000_000_000);
/// A turn that ends this much too late shows that the machine is busy. A rest that does not end in
/// time hides whole phases of the program, so there is no rest for [`NO_REST`] after it.
const TOO_LATE: Nanos = Nanos(10_000_000);
/// So many samples tell shares of CPU time to within 6 percentage points (binomial, 95 %).
const DENSE_SAMPLES: u64 = 256;
/// The same of whatever else runs on the machine: for a program that hardly runs it goes on no
/// longer.
const MOST_DENSE_SAMPLES: u64 = 4_096;
/// The shortest time whose births tell a storm from a few threads.
const TELLING: Nanos = Nanos(1_000_000);
/// A storm of births is expected to go on for this long after it was last seen.
const AFTER_STORM: Nanos = Nanos(500_000_000);
/// Shares of the elapsed time, in millionths, that governed units may cost the program. Memory
/// calls have the largest, because causes of faults cannot be determined well without them.
const GOVERNED: [(Role, u64); 3] = [
    (Role::Mappings, 10_000),
    (Role::Calls, 20_000),
    (Role::Locks, 3_000),
];
/// The same for timers of threads beside records of faults; a profile that was asked for is not
/// paused.
const TIMERS: u64 = 10_000;

impl Drain {
    pub fn new(
        opened: Opened,
        plan: &Plan,
        mode: Mode,
        writer: Writer<File>,
        commands: PipeReader,
        inherit: bool,
    ) -> Self {
        let planned = |role: Role| plan.units.iter().any(|unit| unit.role == role);
        let has_timers = |unit: &Unit| unit.role == Role::Cpu && unit.reach == Reach::Threads;
        let timers = plan.opening.is_some() && plan.units.iter().any(has_timers);
        let mut drain = Self {
            turns: Turns::new(plan, &opened, inherit),
            births_since: monotonic_now(),
            storm_until: Nanos(0),
            watching_all: Vec::new(),
            faults_since: None,
            fault_windows: Vec::new(),
            polled: vec![0; opened.rings.len()],
            opened,
            output: Output::new(writer),
            commands,
            account: Account::default(),
            build_ids: BuildIds::default(),
            losses: Losses::default(),
            notes: Vec::new(),
            mode,
            opening_slot: plan.opening,
            cycle: plan.cycle.clone(),
            rotation: None,
            frequency: None,
            ladder: None,
            current: plan.opening.map_or(Role::Sampled(0), |slot| slot.role),
            governed: GOVERNED
                .into_iter()
                .filter(|(role, _)| planned(*role))
                .chain(match (timers, planned(Role::CpuStacks)) {
                    (true, true) => Some((Role::CpuStacks, TIMERS)),
                    (true, false) => Some((Role::Cpu, TIMERS)),
                    (false, true) => Some((Role::CpuStacks, copies::SHARE)),
                    (false, false) => None,
                })
                .collect(),
            governors: Vec::new(),
            dense_samples_left: (planned(Role::DenseCpu) || planned(Role::DenseCpuStacks))
                .then_some(MOST_DENSE_SAMPLES),
            stacks: planned(Role::CpuStacks).then_some(Stacks::CopiedAtFirst),
            cpu_is_off: false,
            has_timers: timers,
            switches: Switches::default(),
            running_since: None,
            late_at: None,
            latency_windows: Vec::new(),
            latency_since: None,
            watched: Vec::new(),
            events_gone_since: None,
            proc: ProcRoot::default(),
        };
        drain.cpu_is_off = plan.has_later(drain.cpu_role());
        drain
    }

    /// Sets the target, with the counts and notes so far.
    pub fn observe(&mut self, target: &Target, account: Account, notes: Vec<Note>) {
        self.account = account;
        match target {
            Target::Gated(pid) => self.account.add_threads(&[*pid]),
            Target::Pids(pids) => self.account.add_threads(&threads_of(pids, &self.proc)),
            Target::System => self.account.add_threads(&[-1]),
        }
        self.watched = match target {
            Target::Gated(pid) => vec![*pid],
            Target::Pids(pids) => families_of(pids, &self.proc),
            Target::System => Vec::new(),
        };
        self.notes = notes;
    }

    /// Sets the build ids that are known already.
    pub fn knows(&mut self, build_ids: BuildIds) {
        self.build_ids = build_ids;
    }

    /// Sets the wanted samples per second; `None` for a fixed period.
    pub fn sample_at(&mut self, frequency: Option<u64>) {
        self.frequency = frequency;
    }

    /// Sets the path of the file, beside which the thread reserves disk space. It is released when the
    /// disk is full.
    pub fn keep_room(&mut self, path: &Path) {
        self.output.is_at(path);
    }

    /// Writes earlier records.
    pub fn take_in(&mut self, records: &[u8]) {
        let records = self.account.keep_ours(records);
        self.account.count(&records);
        let mut records = self.account.without_strangers(&records).into_owned();
        self.build_ids.fill(&mut records);
        self.output.write_earlier(&records);
    }

    /// Starts turns and budgets.
    pub fn program_runs(&mut self) {
        let now = monotonic_now();
        if self.running_since.replace(now).is_some() {
            return;
        }
        self.faults_since = Some(now);
        if self.cpu_is_off {
            self.set(self.cpu_role(), true);
        }
        self.rotation = Rotation::new(self.opening_slot, self.cycle.clone(), now);
        if let (Mode::Sampled, Some(frequency)) = (self.mode, self.frequency) {
            self.ladder = Some(Ladder::new(frequency, now));
        }
        self.governors = std::mem::take(&mut self.governed)
            .into_iter()
            .map(|(role, share)| (role, Governor::new(share, now)))
            .collect();
    }

    /// Works until told to stop.
    pub fn run(mut self) -> Drained {
        self.output.reserve();
        loop {
            let stop = self.wait();
            self.drain_rings();
            if stop {
                break;
            }
            self.hand_over();
            self.climb();
            self.thin_out_cpu();
            self.change_stacks();
            if self.mode == Mode::Sampled {
                self.govern();
            }
        }
        self.conclude()
    }

    /// Sleeps until there is something to do. True if told to stop.
    fn wait(&mut self) -> bool {
        let descriptors = self.descriptors();
        let sleep = Duration::from_nanos(self.sleep(monotonic_now()).0);
        // ppoll fails only for too many descriptors or lack of memory; then a plain sleep serves as
        // well, because all rings are drained after it.
        let Ok(ready) = perf_poll::wait(&descriptors, sleep) else {
            std::thread::sleep(sleep.min(Duration::from_millis(10)));
            return self.command_if(true);
        };
        for (at, ring) in ready.iter().skip(1).enumerate() {
            if ring.hung_up {
                self.polled[at] += 1;
            }
        }
        self.note_if_detached();
        self.command_if(ready[0].readable || ready[0].hung_up)
    }

    fn descriptors(&self) -> Vec<RawFd> {
        std::iter::once(self.commands.as_raw_fd())
            .chain((0..self.polled.len()).map(|at| self.poll_descriptor(at)))
            .collect()
    }

    /// The descriptor by which a ring is polled; -1, which ppoll ignores, if all threads that wrote
    /// to it are gone.
    fn poll_descriptor(&self, at: usize) -> RawFd {
        let pollable = &self.opened.rings[at].pollable;
        pollable.get(self.polled[at]).copied().unwrap_or(-1)
    }

    fn sleep(&self, now: Nanos) -> Nanos {
        let turn = self.rotation.as_ref().map(Rotation::until);
        let resumes = self.governors.iter().filter_map(|(_, g)| g.resumes_at());
        let due = turn.into_iter().chain(resumes).min();
        let is_trial = self.stacks == Some(Stacks::Chains) && self.account.chains_are_undecided();
        let longest = match is_trial {
            true => UNDECIDED_SLEEP,
            false => LONGEST_SLEEP,
        };
        due.map_or(longest, |due| (due - now).min(longest))
    }

    /// Executes a command if there is one. True if it is to stop, or if the sender is gone.
    fn command_if(&mut self, there: bool) -> bool {
        let mut byte = [0];
        if !there {
            return false;
        }
        match self.commands.read(&mut byte) {
            Ok(1) if byte[0] == Command::Released.byte() => {
                self.program_runs();
                false
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => false,
            _ => true,
        }
    }

    /// Notes when all events are gone although the process lives: the kernel detached us. The
    /// kernel also removes events from a process that ends, shortly before its end is visible;
    /// hence the delay.
    fn note_if_detached(&mut self) {
        let of_threads = |at: &usize| self.opened.rings[*at].class == RingClass::Side;
        let mut rings = (0..self.polled.len()).filter(of_threads).peekable();
        if rings.peek().is_none() || rings.any(|at| self.poll_descriptor(at) >= 0) {
            return;
        }
        let now = monotonic_now();
        let gone_for = now - *self.events_gone_since.get_or_insert(now);
        if gone_for < DETACHED_AFTER || self.notes.contains(&Note::Detached) {
            return;
        }
        let first = self.watched.first();
        let stat = first.and_then(|&pid| self.proc.stat(pid).ok()?);
        if stat.is_some_and(|stat| stat.is_alive() && !stat.is_ending) {
            self.notes.push(Note::Detached);
        }
    }

    /// Empties all rings once (a round). Lifetimes come last, so that a sample's thread was born in
    /// records that are still to be read.
    fn drain_rings(&mut self) {
        let mut rings = std::mem::take(&mut self.opened.rings);
        let (mut of_anybody, ours): (Vec<_>, Vec<_>) = rings
            .iter_mut()
            .partition(|ring| self.account.sees_all(ring.class));
        of_anybody.sort_by_key(|ring| ring.class == RingClass::Side);
        let mut records = Vec::new();
        for shared in of_anybody {
            let whole = shared.ring.drain(|span| records.extend_from_slice(span));
            self.note_malformed(whole);
        }
        for shared in ours {
            let whole = shared.ring.drain(|span| {
                self.account.count(span);
                let span = self.account.without_strangers(span);
                self.gather(&span, shared.class);
            });
            self.note_malformed(whole);
        }
        self.opened.rings = rings;
        let records = self.account.keep_ours(&records);
        self.account.count(&records);
        let records = self.account.without_strangers(&records);
        self.gather(&records, RingClass::Side);
        self.account.end_round();
        self.look_for_lost_births();
        self.output
            .end_round(self.account.sees_all(RingClass::Side));
    }

    /// A birth among lost records would make strangers of a process and all that it starts.
    fn look_for_lost_births(&mut self) {
        if !self.account.take_lost() || !self.account.sees_all(RingClass::Side) {
            return;
        }
        for &pid in &self.watched {
            let threads = threads_of(&family(&self.proc, pid), &self.proc);
            self.account.add_threads(&threads);
        }
    }

    fn note_malformed(&mut self, whole: bool) {
        let malformed = u64::from(!whole);
        self.losses.add(LossKind::MalformedRecord, malformed);
    }

    /// Takes records of a ring over, completed. Only those of lifetimes have mappings of code.
    fn gather(&mut self, span: &[u8], class: RingClass) {
        let (may_map, replaces) = (class == RingClass::Side, self.account.replaces_ids());
        if !may_map && !replaces {
            return self.output.add(span);
        }
        self.output.add_completed(span, |records| {
            if may_map {
                self.build_ids.fill(records);
            }
            if replaces {
                self.account.replace_ids(records);
            }
        });
    }

    /// Stops all events, reads the remaining records and sums up.
    fn conclude(mut self) -> Drained {
        self.end_latency_window();
        let ended = monotonic_now();
        // After a rest, an empty window shows how long the rest was.
        let since = self.faults_since.take().unwrap_or(ended);
        self.fault_windows.push((since, ended));
        for instance in &self.opened.instances {
            let _ = instance.events[0].disable();
        }
        self.drain_rings();
        // Once more, for what could not be told from other processes' records in one round.
        self.drain_rings();
        let mut losses = self.account.losses(self.opened.lost());
        losses.merge(&self.losses);
        let (unwritten, note) = self.output.lost();
        losses.add(LossKind::WriteFailed, unwritten);
        self.notes.extend(note);
        let collection = self.collection(ended);
        closing::close(self.opened);
        Drained {
            collection,
            losses,
            counts: self.account.counts(),
            span: self.account.span(),
            writer: self.output.into_writer(),
        }
    }

    fn collection(&mut self, ended: Nanos) -> Collection {
        let began = self.running_since.unwrap_or(ended);
        let mut collection = Collection {
            mode: self.mode.name().to_owned(),
            latency_windows: std::mem::take(&mut self.latency_windows),
            fault_windows: std::mem::take(&mut self.fault_windows),
            own_cost: self.account.total_cost(),
            ..Collection::default()
        };
        for (role, governor) in std::mem::take(&mut self.governors) {
            let windows = governor.finish(ended);
            let has_substitute = role == Role::CpuStacks && !self.has_timers;
            if windows.len() > 1 && !has_substitute {
                self.notes.push(Note::Paused {
                    part: role.describe(),
                    percent_on: percent_on(&windows, ended - began),
                });
            }
            match role {
                Role::Calls => collection.call_windows = windows,
                Role::Mappings => collection.mapping_windows = windows,
                _ => {}
            }
        }
        collection.notes = self.notes.iter().map(Note::text).collect();
        collection
    }
}

fn percent_on(windows: &[(Nanos, Nanos)], elapsed: Nanos) -> u64 {
    let on: Nanos = windows.iter().map(|&(from, to)| to - from).sum();
    on.0.saturating_mul(100) / elapsed.0.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_of_the_whole_time() {
        let windows = [(Nanos(0), Nanos(10)), (Nanos(50), Nanos(65))];
        assert_eq!(percent_on(&windows, Nanos(100)), 25);
        assert_eq!(percent_on(&windows, Nanos(0)), 2_500);
    }
}
