//! From time-ordered events to causes: one pass, with memory bounded by the touched memory and by
//! unique stacks, not by the number of events.
//!
//! If each fault is recorded (`full` mode), each page's life is followed and causes are exact as
//! far as events allow. If faults are sampled, releases of memory are still recorded (with
//! privileges), and the probability that a page had been touched before follows from the range's
//! history ([`density`]). Without privileges releases are invisible: distinct pages are counted,
//! and [`crate::churn`] identifies churn by how often they repeat.
//!
//! Limits: in sampled mode a first write after a read looks like a first touch; a child made by
//! `vfork(2)` looks like one made by `fork(2)`; huge pages are recognised only if each fault is
//! recorded and base pages are 4 KiB.

mod attribution;
mod begin;
mod calls;
mod classify;
mod density;
mod file_reads;
pub(crate) mod heat;
mod judge;
mod mappers;
mod mappings;
mod pages;
mod process;
mod regions;
mod remaps;
mod roles;
mod syscalls;
mod tally;
mod variation;
mod window_weights;

pub use attribution::{Attribution, ThreadFaults};
pub use classify::refault_by;
pub use pages::Route;
pub use regions::is_private_anonymous;
pub use syscalls::MmCall;
pub use tally::{CallTotals, Cell, Census, ReleaseTotals, Tally, Weight};
pub use variation::Variation;

use crate::account::Lives;
use crate::runtimes::Runtimes;
use crate::touched::Touches;
use file_reads::Reads;
use heat::HeatMap;
use judge::HugeCandidate;
use pagewise_model::allocator::{Allocator, AllocatorKind};
use pagewise_model::event::{Callchain, Event, EventSource, PERF_CONTEXT_USER, Sample};
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::recording::Sidecar;
use pagewise_model::stack::{StackId, StackTable};
use pagewise_model::units::Nanos;
use process::{Process, Thread};
use regions::Owner;
use roles::{Role, Roles};
use rustc_hash::{FxHashMap, FxHashSet};
use window_weights::WindowWeights;

/// Page size if a recording does not contain it.
const USUAL_PAGE_SIZE: u64 = 4096;

/// The huge-page settings of the recorded machine.
#[derive(Clone, Copy, Debug, Default)]
struct HugePages {
    always: bool,
    on_request: bool,
}

/// Takes events in time order and sums them up.
#[derive(Debug)]
pub struct Attributor {
    roles: Roles,
    window_weights: WindowWeights,
    page_shift: u32,
    /// The manager of anonymous memory: by process if that was examined, otherwise as in the main
    /// one.
    managed: Managed,
    managed_in: FxHashMap<i32, Managed>,
    huge_pages: HugePages,
    processes: Vec<Process>,
    pids: Vec<i32>,
    process_of: FxHashMap<i32, usize>,
    last_process: (i32, usize),
    threads: Vec<Thread>,
    thread_of: FxHashMap<i32, usize>,
    last_thread: (i32, usize),
    tids: Vec<i32>,
    /// Living processes by [`Process::kin`].
    kin: FxHashMap<u32, u32>,
    stacks: StackTable,
    /// Stacks that were unwound from copies, and the number of faults that had one.
    unwound: FxHashSet<StackId>,
    unwound_faults: u64,
    chain: Vec<u8>,
    huge: Vec<HugeCandidate>,
    heat: HeatMap,
    touches: Touches,
    lives: Lives,
    reads: Reads,
    tally: Tally,
    losses: Losses,
    span: Option<(u64, u64)>,
}

impl Attributor {
    /// An attributor for the events of these sources. The sidecar provides page size, allocators
    /// and huge-page settings; a default one is fine for recordings of other tools.
    #[must_use]
    pub fn new(sources: &[EventSource], sidecar: &Sidecar) -> Self {
        let page_size = match sidecar.host.page_size {
            size if size.is_power_of_two() && size > 1 => size,
            _ => USUAL_PAGE_SIZE,
        };
        Self {
            roles: Roles::new(sources, sidecar),
            window_weights: WindowWeights::new(&sidecar.collection.fault_windows),
            page_shift: page_size.trailing_zeros(),
            managed: Managed::by(&sidecar.allocators),
            managed_in: sidecar
                .processes
                .iter()
                .map(|process| (process.pid, Managed::by(&process.allocators)))
                .collect(),
            huge_pages: huge_pages(sidecar, page_size),
            processes: Vec::new(),
            pids: Vec::new(),
            process_of: FxHashMap::default(),
            last_process: (-1, 0),
            threads: Vec::new(),
            thread_of: FxHashMap::default(),
            last_thread: (-1, 0),
            tids: Vec::new(),
            kin: FxHashMap::default(),
            stacks: StackTable::default(),
            unwound: FxHashSet::default(),
            unwound_faults: 0,
            chain: Vec::new(),
            huge: Vec::new(),
            heat: HeatMap::new(sidecar.cost.wall),
            touches: Touches::new(sidecar),
            lives: Lives::default(),
            reads: Reads::default(),
            tally: Tally::default(),
            losses: Losses::default(),
            span: None,
        }
    }

    /// Takes one event.
    pub fn event(&mut self, event: &Event<'_>) {
        self.event_with_chain(event, None);
    }

    /// Takes one event whose user call stack was unwound elsewhere from its copied stack: the
    /// addresses, innermost first, replace the sample's own chain.
    pub fn event_with_chain(&mut self, event: &Event<'_>, unwound: Option<&[u64]>) {
        let time = event.time().0;
        if time > 0 {
            let (first, last) = self.span.unwrap_or((time, time));
            self.span = Some((first.min(time), last.max(time)));
        }
        match *event {
            Event::Sample(ref sample) => self.sample(sample, unwound),
            Event::Mmap(ref mmap) => self.mmap(mmap),
            Event::Comm {
                pid,
                tid,
                name,
                exec,
                time,
            } => self.comm(pid, tid, name, exec.then_some(time)),
            Event::Fork {
                pid,
                tid,
                parent_pid,
                time,
                ..
            } => {
                self.lives.begin(pid, tid, time);
                self.fork(pid, tid, parent_pid, time);
            }
            Event::Exit { pid, tid, time } => {
                self.lives.end(pid, tid, time);
                self.exited(pid, tid, time);
            }
            Event::Lost { count, .. } => self.losses.add(LossKind::RingOverrun, count),
            Event::Throttle { paused, .. } => {
                self.losses.add(LossKind::Throttled, u64::from(paused));
            }
            Event::Switch { .. } | Event::Cgroup { .. } => {}
        }
    }

    fn sample(&mut self, sample: &Sample<'_>, unwound: Option<&[u64]>) {
        let (role, has_chain) = self.roles.get(sample.source.0);
        match role {
            Role::EveryFault | Role::SampledFault | Role::WindowFault => {
                let period = self
                    .window_weights
                    .stands_for(sample.period.max(1), sample.time);
                let sample = Sample { period, ..*sample };
                self.fault(&sample, role, has_chain, unwound);
            }
            Role::FaultEnd { major } => self.fault_end(sample, major),
            Role::SampledMajor => self.note_read(sample),
            Role::ErrorCode => self.error_code(sample),
            Role::Enter(call) => self.enter(sample, call, has_chain, unwound),
            Role::Blame(call) => self.blame(sample, call, unwound),
            Role::Exit(call) => self.exit(sample, call),
            Role::LockWait => self.lock_wait(sample, has_chain),
            Role::LockTaken => self.lock_taken(sample),
            Role::Other => {}
        }
    }

    /// Waits for sleeping reader-writer locks are stored by their stack, which identifies the lock
    /// once the kernel's functions have names; without a stack, a wait of a thread inside a fault
    /// or a memory call counts as a wait for `mmap_lock`.
    fn lock_wait(&mut self, sample: &Sample<'_>, has_chain: bool) {
        let thread = self.thread(sample.pid, sample.tid);
        let busy = self.threads[thread].pending.is_some() || self.threads[thread].call.is_some();
        let lock = syscalls::lock_address(sample.raw);
        if let (Some(true), Some(lock)) = (syscalls::is_rwsem(sample.raw), lock) {
            let stack = has_chain.then(|| self.intern(sample.pid, sample.callchain, None));
            if stack.is_some() || busy {
                self.threads[thread].lock = Some((lock, sample.time, stack));
            }
        }
    }

    fn lock_taken(&mut self, sample: &Sample<'_>) {
        let thread = self.thread(sample.pid, sample.tid);
        let lock = syscalls::lock_address(sample.raw);
        let held = self.threads[thread]
            .lock
            .take_if(|(held, ..)| Some(*held) == lock);
        if let Some((_, since, stack)) = held {
            let waits = self.tally.lock_waits.entry(stack).or_default();
            waits.0 += 1;
            waits.1 += sample.time - since;
        }
    }

    /// A thread has a new name, at a time of executing a program or by itself.
    fn comm(&mut self, pid: i32, tid: i32, name: &[u8], executed: Option<Nanos>) {
        let thread = self.thread(pid, tid);
        self.threads[thread].comm = String::from_utf8_lossy(name).into_owned();
        if let Some(time) = executed {
            self.settle(thread, false);
            self.touches.executed(pid, time);
            let process = self.process(pid);
            self.leave_kin(process);
            self.tally.spawned += u64::from(self.processes[process].forked.is_some());
            self.processes[process] = Process {
                threads: 1,
                ..Process::default()
            };
        }
    }

    fn fork(&mut self, pid: i32, tid: i32, parent_pid: i32, time: Nanos) {
        let parent = self.process(parent_pid);
        if pid != parent_pid {
            self.note_shared_pages(parent);
            self.touches.forked(parent_pid, pid, time);
            let index = self.process(pid);
            self.leave_kin(index);
            self.join_kin(parent);
            let child = self.processes[parent].fork(time);
            // Several sources may report the same fork.
            self.tally.forks += u64::from(self.processes[index].forked.is_none());
            self.processes[index] = child;
        }
        let comm = self
            .thread_of
            .get(&parent_pid)
            .map(|&leader| self.threads[leader].comm.clone());
        let thread = self.thread(pid, tid);
        self.threads[thread] = Thread {
            pid,
            comm: comm.unwrap_or_default(),
            ..Thread::default()
        };
        let process = self.process(pid);
        self.processes[process].threads += 1;
    }

    /// Another process shares the pages of this one.
    fn join_kin(&mut self, process: usize) {
        let fresh = u32::try_from(self.kin.len()).unwrap_or(u32::MAX);
        let kin = *self.processes[process].kin.get_or_insert(fresh);
        *self.kin.entry(kin).or_insert(1) += 1;
    }

    /// A process has ended, or executes another program.
    fn leave_kin(&mut self, process: usize) {
        if let Some(kin) = self.processes[process].kin.take()
            && let Some(living) = self.kin.get_mut(&kin)
        {
            *living = living.saturating_sub(1);
        }
    }

    /// Whether all processes that shared this one's pages since a fork are gone.
    fn is_last_of_kin(&self, process: usize) -> bool {
        let kin = self.processes[process].kin;
        kin.is_some_and(|kin| self.kin.get(&kin).is_some_and(|living| *living <= 1))
    }

    /// With sampled faults most touched pages were never seen: the share of each stretch that a
    /// fork shares is estimated from the faults sampled on it.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share between 0 and 1000"
    )]
    fn note_shared_pages(&mut self, parent: usize) {
        if self.roles.coverage != roles::Coverage::Sampled {
            return;
        }
        let shift = self.page_shift;
        // Touches in a rest between windows were not seen.
        let least = if self.window_weights.has_rests() {
            1.0
        } else {
            0.0
        };
        let Process {
            pages,
            regions,
            last_region,
            ..
        } = &mut self.processes[parent];
        *last_region = None;
        for (start, region) in regions.iter_mut() {
            if is_private_anonymous(region.kind) && region.writable {
                let (first, end) = (start >> shift, region.end >> shift);
                let share = pages.sampled_faults(first, end) / (end - first).max(1) as f64;
                region.shared_permille = (share * 1000.0).clamp(least, 1000.0) as u16;
            }
        }
    }

    fn exited(&mut self, pid: i32, tid: i32, time: Nanos) {
        let thread = self.thread(pid, tid);
        self.settle(thread, false);
        let process = self.process(pid);
        let held = &mut self.processes[process];
        held.threads = held.threads.saturating_sub(1);
        if held.threads == 0 && pid == tid {
            let lived = held.forked.take().map(|since| time - since);
            if lived.is_some_and(|lived| lived <= SHORT_LIFE) {
                self.tally.short_lived += 1;
                self.tally.faults_of_short_lived += held.faults_since;
            }
            held.bury();
            self.leave_kin(process);
        }
    }

    fn process(&mut self, pid: i32) -> usize {
        if self.last_process.0 == pid && !self.processes.is_empty() {
            return self.last_process.1;
        }
        let (processes, pids) = (&mut self.processes, &mut self.pids);
        let index = *self.process_of.entry(pid).or_insert_with(|| {
            processes.push(Process::default());
            pids.push(pid);
            processes.len() - 1
        });
        self.last_process = (pid, index);
        index
    }

    fn managed_in(&self, process: usize) -> Managed {
        let own = self.managed_in.get(&self.pids[process]);
        own.copied().unwrap_or(self.managed)
    }

    fn thread(&mut self, pid: i32, tid: i32) -> usize {
        if self.last_thread.0 == tid && !self.threads.is_empty() {
            return self.last_thread.1;
        }
        let (threads, tids) = (&mut self.threads, &mut self.tids);
        let index = *self.thread_of.entry(tid).or_insert_with(|| {
            threads.push(Thread {
                pid,
                ..Thread::default()
            });
            tids.push(tid);
            threads.len() - 1
        });
        self.last_thread = (tid, index);
        index
    }

    fn intern(&mut self, pid: i32, chain: Callchain<'_>, unwound: Option<&[u64]>) -> StackId {
        let Some(frames) = unwound else {
            return self.stacks.intern(pid, chain);
        };
        self.chain.clear();
        self.chain
            .extend_from_slice(&PERF_CONTEXT_USER.to_le_bytes());
        for frame in frames {
            self.chain.extend_from_slice(&frame.to_le_bytes());
        }
        self.stacks
            .intern(pid, Callchain::from_le_bytes(&self.chain))
    }
}

/// A forked process that ends sooner was forked for a single task.
const SHORT_LIFE: Nanos = Nanos(250_000_000);

/// The manager of the anonymous memory of a process.
#[derive(Clone, Copy, Debug)]
struct Managed {
    /// The owner of its blocks.
    owner: Owner,
    /// Whether a language runtime is present, whose own code may map its heap.
    has_runtime: bool,
}

impl Managed {
    /// Memory of runtimes that manage their own heap is not divided into blocks by `malloc`.
    fn by(allocators: &[Allocator]) -> Self {
        let has = |kinds: &[AllocatorKind]| allocators.iter().any(|a| kinds.contains(&a.kind));
        let heaps = [
            AllocatorKind::Go,
            AllocatorKind::Jemalloc,
            AllocatorKind::Tcmalloc,
            AllocatorKind::Mimalloc,
        ];
        let owner = if has(&heaps) {
            Owner::Runtime
        } else if has(&[AllocatorKind::Musl]) {
            Owner::ChunkMapper
        } else {
            Owner::Glibc
        };
        let runtimes = Runtimes::shipped();
        Self {
            owner,
            has_runtime: allocators.iter().any(|one| runtimes.has(one.kind)),
        }
    }
}

fn huge_pages(sidecar: &Sidecar, page_size: u64) -> HugePages {
    let setting = sidecar
        .host
        .settings
        .get("thp.enabled")
        .map_or("", String::as_str);
    let is = |mode: &str| setting == mode || setting.contains(&format!("[{mode}]"));
    let usable = page_size == USUAL_PAGE_SIZE;
    HugePages {
        always: usable && is("always"),
        on_request: usable && (is("always") || is("madvise")),
    }
}

#[cfg(test)]
pub(crate) mod tests;
