//! Opens a plan's units for every thread on every CPU, and the rings that they write to.

mod ring_sizes;

use ring_sizes::{RingSizes, page_size, watermark_part};

use super::notes::Note;
use super::plan::{Plan, Reach, Start, Unit};
use super::role::{RingClass, Role};
use super::{Error, Mode, Target};
use crate::proc::{ProcRoot, family};

use crate::sys::perf_event::{self, EventFd};
use crate::sys::perf_ring::Ring;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// One unit for one thread on one CPU.
#[derive(Debug)]
pub(super) struct Instance {
    pub role: Role,
    /// The group, its leader first.
    pub events: Vec<EventFd>,
}

/// A ring with the events that write to it.
#[derive(Debug)]
pub(super) struct SharedRing {
    pub class: RingClass,
    pub cpu: i32,
    pub ring: Ring,
    /// Descriptors to poll, the owner first. When one hangs up, its thread is gone and the next one
    /// is polled.
    pub pollable: Vec<RawFd>,
}

/// Everything that could be opened.
#[derive(Debug, Default)]
pub(super) struct Opened {
    pub instances: Vec<Instance>,
    pub rings: Vec<SharedRing>,
    /// Instances of units that were given up but whose leader owns a ring that others write to.
    retired: Vec<Instance>,
    lost_by_closed: u64,
}

impl Opened {
    /// Closes a unit that was given up, except for rings that others depend on.
    fn retire(&mut self, role: Role) {
        let (leaving, staying) = std::mem::take(&mut self.instances)
            .into_iter()
            .partition(|instance| instance.role == role);
        self.instances = staying;
        for instance in leaving {
            let leader = instance.events[0].raw();
            if self.rings.iter().any(|ring| ring.pollable[0] == leader) {
                // If this fails it keeps recording: its records then count as of an unknown source.
                let _ = instance.events[0].disable();
                self.retired.push(instance);
            } else {
                for ring in &mut self.rings {
                    ring.pollable.retain(|&fd| fd != leader);
                }
            }
        }
    }

    /// Ids of all instances of a plan's sources, in the plan's order.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn ids(&self, plan: &Plan) -> io::Result<Vec<Vec<u64>>> {
        let mut all = Vec::new();
        for unit in &plan.units {
            for at in 0..unit.sources.len() {
                let of_unit = self.instances.iter().filter(|i| i.role == unit.role);
                all.push(
                    of_unit
                        .map(|i| i.events[at].id())
                        .collect::<Result<_, _>>()?,
                );
            }
        }
        Ok(all)
    }

    /// Records that the kernel dropped in all rings; `None` if it does not count them.
    pub fn lost(&self) -> Option<u64> {
        lost(&self.instances).map(|lost| lost + self.lost_by_closed)
    }

    /// Descriptors of all events.
    fn files(&self) -> usize {
        let all = self.instances.iter().chain(&self.retired);
        all.map(|instance| instance.events.len()).sum()
    }

    /// Adds instances that were opened for a turn.
    pub fn extend(&mut self, instances: Vec<Instance>) {
        self.instances.extend(instances);
    }

    /// Closes a unit whose turn is over.
    pub fn close(&mut self, role: Role) {
        let (leaving, staying) = std::mem::take(&mut self.instances)
            .into_iter()
            .partition::<Vec<_>, _>(|instance| instance.role == role);
        self.instances = staying;
        self.lost_by_closed += lost(&leaving).unwrap_or(0);
        let closed = |fd: &RawFd| leaving.iter().any(|one| one.events[0].raw() == *fd);
        for ring in &mut self.rings {
            ring.pollable.retain(|fd| !closed(fd));
        }
    }
}

fn lost(instances: &[Instance]) -> Option<u64> {
    let events = instances.iter().flat_map(|instance| &instance.events);
    events.map(|event| event.read().ok()?.lost).sum()
}

/// The lowest unused descriptor, which open(2) returns: this many are open below it. `None` if
/// nothing can be opened.
fn first_free_descriptor() -> Option<usize> {
    let probe = File::open("/dev/null").ok()?;
    usize::try_from(probe.as_raw_fd()).ok()
}

/// Descriptors that the process needs besides events.
const SPARE_FILES: u64 = 128;
/// Most events of one thread on one CPU that are opened for a turn.
const LARGEST_TURN: usize = 4;
/// The thread id that stands for everything that a CPU runs (perf_event_open(2)).
pub(super) const EVERYBODY: i32 = -1;
/// Fewest bytes worth a wake-up.
const LEAST_WATERMARK: usize = 16 << 10;

/// Opens events one thread after the other.
pub(super) struct Opener<'a> {
    plan: &'a mut Plan,
    notes: &'a mut Vec<Note>,
    cpus: Vec<i32>,
    /// Whether events start with the program's exec instead of when they are enabled.
    on_exec: bool,
    inherit: bool,
    mode: Mode,
    /// Pages of each ring; halved if the kernel refuses that many.
    sizes: RingSizes,
    opened: Opened,
}

/// Why a unit is not open for a thread.
enum Refusal {
    ThreadGone,
    CpuGone,
    NoFiles,
    Other(io::Error),
}

impl<'a> Opener<'a> {
    pub fn new(
        plan: &'a mut Plan,
        notes: &'a mut Vec<Note>,
        cpus: Vec<i32>,
        target: &Target,
        mode: Mode,
    ) -> Self {
        Self {
            sizes: RingSizes::for_us(cpus.len(), mode),
            plan,
            notes,
            cpus,
            on_exec: matches!(target, Target::Gated(_)),
            mode,
            inherit: !matches!(target, Target::System),
            opened: Opened::default(),
        }
    }

    /// Makes sure that `threads` more threads can be opened, leaving out the least important units
    /// if they cannot.
    pub fn make_room(&mut self, threads: usize) {
        let each = |plan: &Plan| {
            plan.units
                .iter()
                .filter(|unit| unit.start != Start::OnTurn && unit.reach == Reach::Threads)
                .map(|unit| unit.sources.len())
                .sum::<usize>()
                + usize::from(plan.has_turns()) * LARGEST_TURN
        };
        let have = first_free_descriptor().unwrap_or_else(|| self.opened.files());
        let cpus = self.cpus.len();
        let needed = |plan: &Plan| (have + each(plan) * threads * cpus) as u64 + SPARE_FILES;
        let wanted = needed(self.plan);
        let allowed = perf_event::raise_open_files(wanted).unwrap_or(1024);
        while needed(self.plan) > allowed && self.plan.units.len() > 2 {
            let Some(unit) = self.plan.units.pop() else {
                return;
            };
            self.plan.forget(unit.role);
            self.opened.retire(unit.role);
            self.notes.push(Note::TooManyFiles {
                part: unit.role.describe(),
                wanted,
                allowed,
            });
        }
    }

    /// Opens everything for each of `threads`. Returns how many of them were still there. Threads
    /// other than `required` may belong to others, and are left out.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] if the most important unit is refused for lack of rights.
    pub fn open_threads(&mut self, threads: &[i32], required: &[i32]) -> Result<usize, Error> {
        let (mut alive, mut foreign) = (0, 0);
        for (at, &tid) in threads.iter().enumerate() {
            match self.open_thread(tid) {
                Ok(()) => alive += 1,
                Err(Refusal::ThreadGone | Refusal::CpuGone) => {}
                Err(Refusal::Other(cause)) if is_forbidden(&cause) && !required.contains(&tid) => {
                    foreign += 1;
                }
                Err(Refusal::NoFiles) => {
                    self.notes.push(Note::ThreadsUnobserved {
                        count: threads.len() - at,
                    });
                    return Ok(alive);
                }
                Err(Refusal::Other(cause)) => return Err(not_recordable(tid, cause)),
            }
        }
        if foreign > 0 {
            self.notes.push(Note::ThreadsForbidden { count: foreign });
        }
        Ok(alive)
    }

    /// Empties the rings into `records`.
    pub fn drain(&mut self, records: &mut Vec<u8>) {
        for shared in &mut self.opened.rings {
            shared.ring.drain(|span| records.extend_from_slice(span));
        }
    }

    pub fn finish(self) -> Opened {
        self.opened
    }

    fn open_thread(&mut self, tid: i32) -> Result<(), Refusal> {
        let mut open_anywhere = false;
        for cpu in self.cpus.clone() {
            match self.open_on_cpu(tid, cpu) {
                Ok(()) => open_anywhere = true,
                Err(Refusal::CpuGone) => {}
                Err(refusal) => return Err(refusal),
            }
        }
        if open_anywhere {
            Ok(())
        } else {
            Err(Refusal::CpuGone)
        }
    }

    /// Opens all units for a thread on a CPU. A refused unit is left out from then on, with a note;
    /// only the first must succeed.
    fn open_on_cpu(&mut self, tid: i32, cpu: i32) -> Result<(), Refusal> {
        let mut at = 0;
        while at < self.plan.units.len() {
            let unit = &self.plan.units[at];
            if unit.start == Start::OnTurn || unit.reach == Reach::Machine {
                at += 1;
                continue;
            }
            match self.open_unit(at, tid, cpu) {
                Ok(()) => at += 1,
                Err(Refusal::Other(error)) if at > 0 => self.leave_out(at, &error),
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(())
    }

    /// Opens the units that watch whole CPUs. A refused unit is left out, with a note.
    pub fn open_machine(&mut self) {
        let mut at = 0;
        while at < self.plan.units.len() {
            match self.open_on_all_cpus(at) {
                Ok(()) => at += 1,
                Err(error) => self.leave_out(at, &error),
            }
        }
    }

    fn open_on_all_cpus(&mut self, at: usize) -> io::Result<()> {
        let unit = &self.plan.units[at];
        if unit.reach != Reach::Machine || unit.start == Start::OnTurn {
            return Ok(());
        }
        for cpu in self.cpus.clone() {
            match self.open_unit(at, EVERYBODY, cpu) {
                Ok(()) | Err(Refusal::CpuGone | Refusal::ThreadGone) => {}
                Err(Refusal::NoFiles) => return Err(io::Error::from_raw_os_error(libc::EMFILE)),
                Err(Refusal::Other(error)) => return Err(error),
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, at: usize, error: &io::Error) {
        let unit = self.plan.units.remove(at);
        self.plan.forget(unit.role);
        self.opened.retire(unit.role);
        let reason = error.to_string();
        self.notes.push(match unit.role {
            Role::Calls => Note::NoCalls { reason },
            Role::Locks => Note::NoLocks { reason },
            role => Note::Refused {
                part: role.describe(),
                reason,
            },
        });
    }

    fn open_unit(&mut self, at: usize, tid: i32, cpu: i32) -> Result<(), Refusal> {
        let unit = &self.plan.units[at];
        let class = unit.role.ring();
        let watermark = self.sizes.size_mut(class).saturating_mul(page_size())
            / watermark_part(class, self.mode);
        let watermark = watermark.max(LEAST_WATERMARK);
        let mut events: Vec<EventFd> = Vec::with_capacity(unit.sources.len());
        for at in 0..unit.sources.len() {
            let leader = events.first();
            let event = open_source(
                unit,
                at,
                Place { tid, cpu, leader },
                self.on_exec,
                self.inherit && unit.reach == Reach::Threads,
                u32::try_from(watermark).unwrap_or(u32::MAX),
            )
            .map_err(Refusal::from)?;
            events.push(event);
        }
        let role = unit.role;
        self.connect(role, cpu, &events).map_err(Refusal::from)?;
        if self.must_enable_now(at) {
            events[0].enable().map_err(Refusal::from)?;
        }
        self.opened.instances.push(Instance { role, events });
        Ok(())
    }

    /// Lifetimes are recorded from the first moment, so that a thread born while others are being
    /// opened is known to have inherited their events.
    fn must_enable_now(&self, at: usize) -> bool {
        self.plan.units[at].start == Start::AtOnce
    }

    /// Sends a group's records to the ring of its class and CPU, and maps that ring if it is new.
    fn connect(&mut self, role: Role, cpu: i32, events: &[EventFd]) -> io::Result<()> {
        let (class, is_keeper) = (role.ring(), role == Role::FaultRing);
        let shared = self
            .opened
            .rings
            .iter_mut()
            .find(|ring| ring.class == class && ring.cpu == cpu);
        let (owner, rest) = match shared {
            Some(shared) => {
                // Units of faults come and go, so the ring's keeper is polled for all of them.
                if class != RingClass::Faults || is_keeper || !self.plan.has_turns() {
                    shared.pollable.push(events[0].raw());
                }
                (shared.pollable[0], events)
            }
            None => (self.map_ring(class, cpu, &events[0])?, &events[1..]),
        };
        rest.iter().try_for_each(|event| event.redirect_to(owner))
    }

    fn map_ring(&mut self, class: RingClass, cpu: i32, owner: &EventFd) -> io::Result<RawFd> {
        let ring = loop {
            let pages = *self.sizes.size_mut(class);
            match Ring::map(owner, pages, page_size()) {
                Ok(ring) => break ring,
                Err(error) if pages <= 2 || error.raw_os_error() != Some(libc::EPERM) => {
                    return Err(error);
                }
                Err(_) => *self.sizes.size_mut(class) = pages / 2,
            }
        };
        if class == RingClass::Faults && ring.size() < SMALL_RING {
            let note = Note::SmallRings {
                kib: (ring.size() / 1024) as u64,
            };
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.opened.rings.push(SharedRing {
            class,
            cpu,
            ring,
            pollable: vec![owner.raw()],
        });
        Ok(owner.raw())
    }
}

/// A ring for faults smaller than this many bytes gets a note: it fits some 10 ms of the busiest
/// program's faults.
const SMALL_RING: usize = 128 << 10;

/// The thread, CPU and group for which an event is opened.
pub(super) struct Place<'a> {
    pub tid: i32,
    pub cpu: i32,
    pub leader: Option<&'a EventFd>,
}

/// Opens one source of a unit. Only the leader is ever disabled: its group follows it.
pub(super) fn open_source(
    unit: &Unit,
    at: usize,
    place: Place<'_>,
    on_exec: bool,
    inherit: bool,
    watermark: u32,
) -> io::Result<EventFd> {
    let source = &unit.sources[at];
    let mut attr = source.attr;
    let leads = place.leader.is_none();
    attr.set_disabled(u64::from(leads));
    let with_exec = leads && on_exec && unit.start == Start::WithProgram;
    attr.set_enable_on_exec(u64::from(with_exec));
    attr.set_inherit(u64::from(inherit));
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = watermark;
    let event = perf_event::open(&mut attr, place.tid, place.cpu, place.leader)?;
    if let Some(filter) = source.filter {
        event.set_filter(filter)?;
    }
    Ok(event)
}

fn is_forbidden(cause: &io::Error) -> bool {
    matches!(cause.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn not_recordable(tid: i32, cause: io::Error) -> Error {
    match cause.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) if tid < 0 => Error::SystemNotAllowed,
        Some(libc::EACCES | libc::EPERM) => Error::NotAllowed { pid: tid },
        _ => Error::System {
            action: "open perf events",
            cause,
        },
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ESRCH) => Self::ThreadGone,
            Some(libc::ENODEV) => Self::CpuGone,
            Some(libc::EMFILE | libc::ENFILE) => Self::NoFiles,
            _ => Self::Other(error),
        }
    }
}

/// `pids` and all their living descendants.
pub(super) fn families_of(pids: &[i32], proc: &ProcRoot) -> Vec<i32> {
    let mut members = Vec::new();
    for member in pids.iter().flat_map(|&pid| family(proc, pid)) {
        if !members.contains(&member) {
            members.push(member);
        }
    }
    members
}

/// Threads of `pids` and of their descendants that are alive now.
pub(super) fn threads_of(pids: &[i32], proc: &ProcRoot) -> Vec<i32> {
    let members = families_of(pids, proc).into_iter();
    members.flat_map(|pid| proc.tasks(pid)).collect()
}
