//! Where CPU time went, according to samples of the kernel's stacks, weighted to the exact totals.
//!
//! The windows in which each fault is timed are short, so a fault that takes longer than most of a
//! window is rarely seen in full. Samples of CPU time see a fault in proportion to its time. They
//! are a second estimate of the same quantity: [`combined`] takes the narrower interval where the
//! two agree, and an interval that spans both where they do not.
//!
//! Elapsed time comes from observed thread states ([`mod@elapsed`]), and time by process and thread
//! from the counters of each ([`mod@tasks`]).

mod allocator;
mod counted;
mod elapsed;
mod faults;
mod huge;
mod lives;
mod locks;
mod modes;
mod table;
mod tasks;
mod zeroing;

pub(crate) use counted::count_waits;
pub(crate) use elapsed::elapsed;
pub(crate) use faults::reconcile;
pub use huge::SPARSE;
pub(crate) use huge::huge_faults;
pub(crate) use lives::Lives;
pub use table::KernelTable;
pub(crate) use tasks::tasks;

use crate::attribute::wilson;
use crate::causes::Weight;
use crate::runtimes::Runtimes;
use allocator::AllocatorTable;
use locks::Asks;
use modes::Modes;
use pagewise_model::account::{
    ALLOCATOR, Account, CALLOC, COLLECTOR, KernelEntry, KernelWork, LOCKS, QUEUE, TimePart,
};
use pagewise_model::profile::{Frame, FrameKind, NodeId, Profile};
use pagewise_model::run::RunCost;
use pagewise_model::units::Estimate;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use table::Reason;

/// With fewer samples a share is off by up to 18 percentage points (binomial, 95 %): too imprecise.
const FEWEST: f64 = 30.0;
/// Kernel functions that are named for an entry.
const MOST_FUNCTIONS: usize = 3;
/// The entry into the kernel by which threads sleep for a lock and wake others (`kernel.toml`).
const SLEEPS_AND_WAKES: &str = "call.futex";
/// The part of the CPU time that nothing explains.
pub const UNEXPLAINED: &str = "unexplained";
/// perf's names of events that sample CPU time, in order of preference.
const CPU_EVENTS: [&str; 4] = ["cpu-clock", "task-clock", "cycles", "cpu-cycles"];

/// How the CPU time of a run was spent, according to the samples of `profile`. Without samples of
/// the kernel its total is known, from the run's resource usage, and samples of the program itself
/// divide the user time.
pub(crate) fn account(profile: Option<&Profile>, cost: &RunCost, table: &KernelTable) -> Account {
    let sampled = profile.map(|profile| Sums::new(profile, table));
    match sampled.filter(|sums| sums.see_the_kernel(cost) || sums.see_the_program_alone()) {
        Some(sums) => sums.account(cost),
        None => blind(cost),
    }
}

fn float(nanos: u64) -> f64 {
    nanos as f64
}

fn blind(cost: &RunCost) -> Account {
    let system = Estimate::exact(float(cost.system.0));
    Account {
        kernel: system,
        unexplained: system,
        ..Account::default()
    }
}

/// Weights of samples.
#[derive(Default)]
struct Sums {
    all: Weight,
    kernel: u64,
    nameless: u64,
    entries: BTreeMap<(String, String), EntrySum>,
    work: BTreeMap<String, (u64, u64)>,
    /// In faults, by what was done to the page's content.
    content: BTreeMap<(String, String), u64>,
    /// In user mode: all, and the part in functions without a name.
    user: u64,
    user_nameless: u64,
    /// In the program's own functions.
    own: BTreeMap<String, u64>,
    /// In functions of an allocator.
    allocator: BTreeMap<String, u64>,
    /// Below functions of a garbage collector, by function.
    collector: BTreeMap<String, u64>,
    /// Taking and releasing locks, by the function that asks for them.
    locks: BTreeMap<String, u64>,
    /// Zeroing memory for calloc, by the function that requests it.
    zeroing: BTreeMap<String, u64>,
}

#[derive(Default)]
struct EntrySum {
    weight: u64,
    calls: BTreeMap<String, u64>,
    functions: BTreeMap<String, u64>,
}

impl Sums {
    fn new(profile: &Profile, table: &KernelTable) -> Self {
        let mut sums = Self::default();
        let Some(event) = cpu_event(profile) else {
            return sums;
        };
        let mut by_stack: BTreeMap<NodeId, u64> = BTreeMap::new();
        for sample in profile.samples.iter().filter(|one| one.event == event) {
            *by_stack.entry(sample.stack).or_default() += sample.weight;
            sums.all.add(float(sample.weight));
        }
        let allocators = AllocatorTable::shipped();
        let runtimes = Runtimes::shipped();
        for (stack, weight) in by_stack {
            let kernel = kernel_functions(profile, stack);
            if let (true, Some(leaf)) = (kernel.is_empty(), leaf(profile, stack)) {
                sums.user += weight;
                let sum = if let Some(function) = collecting(profile, stack, runtimes) {
                    sums.collector.entry(function.to_owned())
                } else if let Some(function) = zeroing::for_calloc(profile, stack) {
                    sums.zeroing.entry(function.to_owned())
                } else {
                    match locks::asking(profile, stack) {
                        Some(Asks::Function(function)) => sums.locks.entry(function.to_owned()),
                        Some(Asks::Unknown) => sums.locks.entry(String::new()),
                        Some(Asks::Allocator) => sums.allocator.entry(leaf.name.to_string()),
                        None => sums.of_code(leaf, weight, allocators),
                    }
                };
                *sum.or_default() += weight;
            }
            let entered = sums.add(&kernel, weight, table);
            if entered.as_deref() == Some(SLEEPS_AND_WAKES)
                && let Some(Asks::Function(_) | Asks::Unknown) = locks::asking(profile, stack)
            {
                sums.work.entry(QUEUE.to_owned()).or_default().0 += weight;
            }
        }
        sums
    }

    /// How many samples of equal weight would be as precise: those of a recording's first moments
    /// weigh less.
    fn samples(&self) -> f64 {
        self.all.effective_samples()
    }

    /// The sum of a function in user mode: an allocator's, or the program's own.
    fn of_code(
        &mut self,
        leaf: &Frame,
        weight: u64,
        allocators: &AllocatorTable,
    ) -> Entry<'_, String, u64> {
        if allocators.has(leaf) {
            return self.allocator.entry(leaf.name.to_string());
        }
        if leaf.unnamed.is_some() {
            self.user_nameless += weight;
        }
        self.own.entry(leaf.name.to_string())
    }

    /// Adds a sample in the kernel; the entry that it belongs to.
    fn add(&mut self, functions: &[&Frame], weight: u64, table: &KernelTable) -> Option<String> {
        if functions.is_empty() {
            return None;
        }
        self.kernel += weight;
        let named: Vec<&str> = functions
            .iter()
            .filter(|frame| frame.unnamed.is_none())
            .map(|frame| &*frame.name)
            .collect();
        let Some(reason) = table.reason(&named) else {
            self.nameless += weight;
            return None;
        };
        let entered = reason.id.clone();
        if let Some(work) = table.work(&named, &reason.id) {
            let sum = self.work.entry(work.to_owned()).or_default();
            sum.0 += weight;
            sum.1 += if reason.id == "fault" { weight } else { 0 };
        }
        if reason.id == "fault"
            && let Some((id, label)) = table.content(&named)
        {
            let key = (id.to_owned(), label.to_owned());
            *self.content.entry(key).or_default() += weight;
        }
        self.enter(reason, named.last().copied(), weight);
        Some(entered)
    }

    fn enter(&mut self, reason: Reason, innermost: Option<&str>, weight: u64) {
        let entry = self.entries.entry((reason.id, reason.label)).or_default();
        entry.weight += weight;
        if let Some(call) = reason.call {
            *entry.calls.entry(call).or_default() += weight;
        }
        if let Some(function) = innermost {
            *entry.functions.entry(function.to_owned()).or_default() += weight;
        }
    }

    /// Whether the samples include the kernel. If the program spent a good part of its time in the
    /// kernel they do, unless the kernel may not be sampled or its functions have no names.
    fn see_the_kernel(&self, cost: &RunCost) -> bool {
        let enough = self.samples() >= FEWEST && cost.cpu().0 > 0;
        let named = self.nameless * 2 <= self.kernel;
        enough && named && (self.kernel > 0 || cost.system.0 * 20 < cost.cpu().0)
    }

    /// Without privileges only user mode is sampled.
    fn see_the_program_alone(&self) -> bool {
        self.samples() >= FEWEST && self.kernel == 0
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no more than there are samples"
    )]
    fn account(self, cost: &RunCost) -> Account {
        let (samples, all) = (self.samples(), self.all.sum);
        let in_user = float(self.user) / float((self.user + self.kernel).max(1));
        let modes = match self.kernel {
            0 => Modes::counted(cost),
            _ => Modes::new(cost, in_user, samples),
        };
        // Samples divide the time within each mode.
        let share_out = |mode: u64, of: Estimate| {
            let mode = float(mode);
            let samples = samples * mode / all;
            move |weight: u64| match mode > 0.0 {
                true => wilson(float(weight) / mode, samples).times(of),
                false => Estimate::default(),
            }
        };
        let in_user = share_out(self.user, modes.user);
        let in_kernel = share_out(self.kernel, modes.kernel);
        // If most of the program has no names, an allocator linked into it has none either; the C
        // library's is recognised anyway.
        let named = self.user_nameless * 2 <= self.user;
        let allocator = (named || !self.allocator.is_empty()).then(|| TimePart {
            places: heaviest(&self.allocator),
            ..TimePart::plain(
                ALLOCATOR,
                "the memory allocator's code",
                in_user(self.allocator.values().sum()),
            )
        });
        // Without a named function of a collector none can be detected.
        let collector = (!self.collector.is_empty()).then(|| TimePart {
            places: heaviest(&self.collector),
            ..TimePart::plain(
                COLLECTOR,
                "the runtime's garbage collector",
                in_user(self.collector.values().sum()),
            )
        });
        let rows = [
            (LOCKS, "taking and releasing locks", &self.locks),
            (CALLOC, "zeroing memory for calloc", &self.zeroing),
        ];
        let rows = rows.into_iter().filter(|(_, _, sums)| !sums.is_empty());
        let named = |sums| heaviest(sums).into_iter().filter(|name| !name.is_empty());
        let rows = rows.map(|(id, label, sums)| TimePart {
            places: named(sums).collect(),
            ..TimePart::plain(id, label, in_user(sums.values().sum()))
        });
        let parts = allocator.into_iter().chain(collector).chain(rows);
        let functions = heaviest(&self.own);
        let own = TimePart {
            shares: functions
                .iter()
                .map(|name| in_user(self.own[name]).value / float(cost.cpu().0.max(1)))
                .collect(),
            places: functions,
            ..TimePart::plain("own", "the program's own code", Estimate::default())
        };
        let mut entries: Vec<KernelEntry> = self
            .entries
            .into_iter()
            .map(|((id, label), sum)| KernelEntry {
                label: with_calls(label, &sum.calls),
                id,
                time: in_kernel(sum.weight),
                functions: heaviest(&sum.functions),
            })
            .collect();
        entries.sort_by(|a, b| b.time.value.total_cmp(&a.time.value));
        let work = self
            .work
            .into_iter()
            .map(|(id, (all, in_faults))| KernelWork {
                id,
                time: in_kernel(all),
                in_faults: in_kernel(in_faults),
            });
        let content = self
            .content
            .into_iter()
            .map(|((id, label), weight)| TimePart::plain(&id, &label, in_kernel(weight)));
        let faults = fault_parts(&entries, content.collect());
        let unexplained = match self.kernel {
            0 => modes.kernel,
            _ => in_kernel(self.nameless),
        };
        Account {
            cpu: cpu_parts(own, modes.user, parts.collect(), &entries, unexplained),
            samples: samples.round() as u64,
            kernel: modes.kernel,
            entries,
            faults,
            work: work.collect(),
            unexplained,
            elapsed: Vec::new(),
            delays: None,
            tasks: None,
        }
    }
}

/// The time of faults: work on pages' contents, and the rest. Empty if no sample shows work on
/// contents, since then it may be inlined into functions that do more.
fn fault_parts(entries: &[KernelEntry], mut parts: Vec<TimePart>) -> Vec<TimePart> {
    let all = entries.iter().find(|entry| entry.id == "fault");
    let Some(all) = all.filter(|_| !parts.is_empty()) else {
        return Vec::new();
    };
    let left = |of: fn(&Estimate) -> f64, less: fn(&Estimate) -> f64| {
        let taken: f64 = parts.iter().map(|part| less(&part.time)).sum();
        (of(&all.time) - taken).max(0.0)
    };
    let rest = Estimate {
        value: left(|time| time.value, |time| time.value),
        low: left(|time| time.low, |time| time.high),
        high: left(|time| time.high, |time| time.low),
    };
    parts.push(TimePart::plain("handling", "handling the fault", rest));
    parts.retain(|part| part.time.value > 0.0);
    parts.sort_by(|a, b| b.time.value.total_cmp(&a.time.value));
    parts
}

/// All CPU time: user time belongs to the program itself, except the `parts` that manage memory.
fn cpu_parts(
    own: TimePart,
    user: Estimate,
    mut parts: Vec<TimePart>,
    entries: &[KernelEntry],
    unexplained: Estimate,
) -> Vec<TimePart> {
    let left = |user: f64, of: fn(&Estimate) -> f64| {
        let others: f64 = parts.iter().map(|part| of(&part.time)).sum();
        (user - others).max(0.0)
    };
    let time = Estimate {
        value: left(user.value, |time| time.value),
        low: left(user.low, |time| time.high),
        high: left(user.high, |time| time.low),
    };
    parts.push(TimePart { time, ..own });
    parts.extend(entries.iter().map(|entry| TimePart {
        places: entry.functions.clone(),
        ..TimePart::plain(&entry.id, &entry.label, entry.time)
    }));
    parts.push(TimePart::plain(
        UNEXPLAINED,
        "the kernel, unexplained",
        unexplained,
    ));
    parts.retain(|part| part.time.value > 0.0);
    parts.sort_by(|a, b| b.time.value.total_cmp(&a.time.value));
    parts
}

/// The event of a profile that samples CPU time.
pub(crate) fn cpu_event(profile: &Profile) -> Option<u16> {
    let named = |wanted: &&str| {
        let is_it = |name: &str| name.split([':', '/']).next() == Some(wanted);
        profile.events.iter().position(|event| is_it(&event.name))
    };
    let at = CPU_EVENTS.iter().find_map(named)?;
    u16::try_from(at).ok()
}

/// The function that the CPU was executing.
fn leaf(profile: &Profile, stack: NodeId) -> Option<&Frame> {
    let id = profile.stacks.frames(stack).next()?;
    profile.frames.get(id.0 as usize)
}

/// The outermost function of a garbage collector on a stack.
fn collecting<'a>(profile: &'a Profile, stack: NodeId, runtimes: &Runtimes) -> Option<&'a str> {
    let frames = profile.stacks.frames(stack);
    let frames = frames.filter_map(|id| profile.frames.get(id.0 as usize));
    let found = frames.filter(|frame| match frame.unnamed {
        None => runtimes.collector_of(&frame.name).is_some(),
        Some(_) => runtimes.collector_in(&frame.module).is_some(),
    });
    found.last().map(|frame| &*frame.name)
}

/// The kernel's part of a stack, outermost first; empty for a stack in user code.
fn kernel_functions(profile: &Profile, stack: NodeId) -> Vec<&Frame> {
    let frames = profile.stacks.frames(stack);
    let frames = frames.filter_map(|id| profile.frames.get(id.0 as usize));
    let mut kernel: Vec<&Frame> = frames
        .take_while(|frame| frame.kind == FrameKind::Kernel)
        .collect();
    kernel.reverse();
    kernel
}

/// `reading (pread64)`; `the system call bpf`.
fn with_calls(label: String, calls: &BTreeMap<String, u64>) -> String {
    let named = heaviest(calls);
    match named.is_empty() {
        true => label,
        false if label == "the system call" => format!("{label} {}", named.join(", ")),
        false => format!("{label} ({})", named.join(", ")),
    }
}

/// The heaviest few of those that have a tenth or more of the total.
fn heaviest(weights: &BTreeMap<String, u64>) -> Vec<String> {
    let all: u64 = weights.values().sum();
    let mut found: Vec<_> = weights.iter().filter(|one| one.1 * 10 >= all).collect();
    found.sort_by(|a, b| b.1.cmp(a.1));
    let names = found.into_iter().map(|(name, _)| name.clone());
    names.take(MOST_FUNCTIONS).collect()
}

/// One figure from two estimates, and whether they contradict each other. `windows` comes from
/// single faults, `samples` from samples of CPU time. If the two agree, the narrower interval is
/// returned. Samples do not miss long faults, which rarely lie in a window as a whole: if the
/// windows show less, the samples' interval is returned, otherwise one that spans both.
#[must_use]
pub fn combined(windows: Estimate, samples: Estimate) -> (Estimate, bool) {
    if windows.high < samples.low {
        return (samples, true);
    }
    if samples.high < windows.low {
        let spanning = Estimate {
            value: samples.value,
            low: samples.low,
            high: windows.high,
        };
        return (spanning, true);
    }
    let narrower = windows.high - windows.low <= samples.high - samples.low;
    (if narrower { windows } else { samples }, false)
}

#[cfg(test)]
mod tests;
