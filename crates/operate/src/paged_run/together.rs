//! The shared budget of a run's processes: measures the use of each, and assigns shares.

use super::outside::{self, has_passed};
use anyhow::{Context, Result};
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::process::is_byte_locked;
use pagewise_model::units::Bytes;
use pagewise_simulate::budget_shares::{Member, divide, grant};
use pagewise_wire::counter;
use pagewise_wire::snapshot::{self, ProcessBytes};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Time between two looks while several processes live, or until the next check for new ones; and
/// the maximum time between two looks at a single process.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));
/// Looks may take this part of the time.
const MOST_LOOKING: u32 = 20;
/// Maximum pause for that reason.
const LONGEST: Duration = Duration::from_millis(500);
/// If less than this part of the budget is left for manageable memory, a message is printed,
const LEAST_LEFT: u64 = 2;
/// after this time: pages of files, which count among the rest, are paged out meanwhile.
const LEFT_FOR: Duration = Duration::from_secs(1);

/// State of a process at the last look.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    refaults: u64,
    evicted: u64,
    /// Refaults per second, smoothed.
    rate: f64,
    /// In addition to memory that cannot be managed.
    share: u64,
}

/// A process that takes memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taker {
    name: String,
    pid: u32,
    resident: u64,
    /// The part of it that cannot be managed and is not memory of the store.
    fixed: u64,
    /// Whether pages that it shares with others count in full, as this user may not look at them.
    is_whole: bool,
}

/// A process of the run that is managed.
struct Living {
    place: usize,
    taker: Taker,
    member: Member,
    /// Memory that it shares with others and that therefore also counts for them.
    elsewhere: u64,
    /// Whether all of its pages are kept in memory for `--fill`: those beyond its share do not
    /// count.
    is_held: bool,
    /// Since the last look.
    refaults: u64,
    before: Before,
}

/// What a process takes, by the kernel.
#[derive(Clone, Copy)]
struct Size {
    resident: u64,
    /// As [`Living::elsewhere`].
    elsewhere: u64,
    /// As [`Taker::is_whole`].
    is_whole: bool,
}

impl Living {
    fn measured(&mut self, size: Size, elapsed: Duration) {
        self.elsewhere = size.elsewhere;
        self.taker.resident = size.resident;
        self.taker.is_whole = size.is_whole;
        self.taker.fixed = self.taker.fixed.min(size.resident);
        self.member.resident = size.resident;
        self.member.fixed = self.member.fixed.min(size.resident);
        let now = self.refaults as f64 / elapsed.as_secs_f64().max(0.001);
        self.before.rate = f64::midpoint(self.member.refaults, now);
        self.member.refaults = self.before.rate;
    }
}

fn resident(sizes: &[Size]) -> u64 {
    sizes.iter().map(|size| size.resident).sum()
}

/// One budget for many processes.
#[derive(Debug)]
pub struct Together {
    budget: u64,
    proc: ProcRoot,
    last: Instant,
    due: Instant,
    full_due: Instant,
    taken: u32,
    before: BTreeMap<(usize, u32), Before>,
    peak: u64,
    at_peak: Vec<Taker>,
    /// Since when too little has been left.
    short_since: Option<Instant>,
    has_said: bool,
}

impl Together {
    /// The state for a run with this budget.
    ///
    /// # Errors
    /// If the shared memory cannot be written.
    pub fn new(budget: u64, shared: &File) -> Result<Self> {
        write(shared, snapshot::TREE_AT, budget)?;
        let now = Instant::now();
        Ok(Self {
            budget,
            proc: ProcRoot::default(),
            last: now,
            due: now,
            full_due: now,
            taken: 0,
            before: BTreeMap::new(),
            peak: 0,
            at_peak: Vec::new(),
            short_since: None,
            has_said: false,
        })
    }

    /// Time until the next look is due.
    pub fn patience(&self, most: Duration) -> Duration {
        most.min(self.due.saturating_duration_since(Instant::now()))
    }

    /// Looks at the run whose first process is `root`, if it is time.
    ///
    /// # Errors
    /// If the shared memory cannot be read or written.
    pub fn look(&mut self, root: u32, shared: &File, say: &dyn Fn(&str)) -> Result<()> {
        let began = Instant::now();
        if began < self.due {
            return Ok(());
        }
        self.due = began + PAUSES.0;
        let mut head = [0; snapshot::HEAD_BYTES];
        shared.read_exact_at(&mut head, 0).context("statistics")?;
        let taken = snapshot::taken(&head);
        if taken == self.taken && began < self.full_due {
            return Ok(());
        }
        self.taken = taken;
        let several = self.look_at_all(root, taken, shared, say)?;
        let cost = began.elapsed() * MOST_LOOKING;
        let pause = if several { PAUSES.0 } else { PAUSES.1 };
        self.full_due = began + pause.max(cost.min(LONGEST));
        Ok(())
    }

    /// Looks at all processes, and assigns shares; returns whether there are several.
    fn look_at_all(
        &mut self,
        root: u32,
        taken: u32,
        shared: &File,
        say: &dyn Fn(&str),
    ) -> Result<bool> {
        let elapsed = self.last.elapsed();
        self.last = Instant::now();
        let mut living = self.living(shared, taken)?;
        let all = outside::tree(root);
        let is_managed = |pid: &u32| living.iter().any(|one| one.taker.pid == *pid);
        let unmanaged: Vec<Taker> = all
            .iter()
            .filter(|pid| !is_managed(pid))
            .filter_map(|pid| self.unmanaged(*pid))
            .collect();
        let several = living.len() + unmanaged.len() > 1;
        let outside: u64 = unmanaged.iter().map(|one| one.resident).sum();
        let mut sizes = self.sizes(&living, several);
        // A page that moves while the kernel looks (to be written) may count twice.
        if has_passed(outside + resident(&sizes), self.budget) {
            let again = self.sizes(&living, several);
            if resident(&again) < resident(&sizes) {
                sizes = again;
            }
        }
        for (one, size) in living.iter_mut().zip(sizes) {
            one.measured(size, elapsed);
        }
        let budget = self.budget.saturating_sub(outside);
        let members: Vec<Member> = living.iter().map(|one| one.member).collect();
        let shares = divide(budget, &members);
        let granted = grant(budget, &members, &shares);
        self.before.clear();
        for ((one, share), total) in living.iter().zip(&shares).zip(granted) {
            write(shared, snapshot::share_at(one.place), total + one.elsewhere)?;
            let key = (one.place, one.taker.pid);
            self.before.insert(
                key,
                Before {
                    share: *share,
                    ..one.before
                },
            );
        }
        write(shared, snapshot::NEWCOMERS_AT, 0)?;
        let said = u32::from(several).to_le_bytes();
        shared.write_all_at(&said, snapshot::SEVERAL_AT as u64)?;
        let takers = living.into_iter().map(|one| one.taker).chain(unmanaged);
        self.note(takers.collect(), say);
        Ok(several)
    }

    /// The living managed processes, from their figures.
    fn living(&self, shared: &File, taken: u32) -> Result<Vec<Living>> {
        let count = usize::try_from(taken).unwrap_or(usize::MAX);
        let mut bytes = vec![0; snapshot::bytes_of_first(count)];
        shared.read_exact_at(&mut bytes, 0).context("statistics")?;
        let lives = |place: usize, one: &ProcessBytes<'_>| match one.is_marked() {
            true => u32::try_from(place)
                .is_ok_and(|place| is_byte_locked(shared.as_fd(), place).unwrap_or(false)),
            false => !one.has_ended(),
        };
        let found = snapshot::processes(&bytes).filter(|(place, one)| lives(*place, one));
        Ok(found
            .map(|(place, one)| self.as_told(place, &one))
            .collect())
    }

    /// A process, from its figures.
    fn as_told(&self, place: usize, one: &ProcessBytes<'_>) -> Living {
        let pid = one.pid();
        let known = self.before.get(&(place, pid)).copied();
        let (refaults, evicted) = (counter!(one, refaults), counter!(one, pages_evicted));
        let fixed = match counter!(one, managed_bytes) {
            0 => u64::MAX,
            _ => counter!(one, unmanaged_bytes),
        };
        let before = known.unwrap_or(Before {
            refaults,
            evicted,
            rate: 0.0,
            share: counter!(one, share_bytes).saturating_sub(counter!(one, unmanaged_bytes)),
        });
        Living {
            place,
            taker: Taker {
                name: String::from_utf8_lossy(one.name()).into_owned(),
                pid,
                resident: 0,
                fixed: fixed.saturating_sub(counter!(one, store_memory_bytes)),
                is_whole: false,
            },
            member: Member {
                resident: 0,
                fixed,
                share: before.share,
                refaults: before.rate,
                is_short: evicted > before.evicted,
            },
            elsewhere: 0,
            is_held: one.hold()[0] != 0,
            refaults: refaults.saturating_sub(before.refaults),
            before: Before {
                refaults,
                evicted,
                ..before
            },
        }
    }

    /// The kernel's figures of each process. If there are others, shared pages are divided among
    /// them.
    fn sizes(&self, living: &[Living], several: bool) -> Vec<Size> {
        let size = |one: &Living| self.size(one, several);
        living.iter().map(size).collect()
    }

    fn size(&self, one: &Living, several: bool) -> Size {
        let pid = i32::try_from(one.taker.pid).unwrap_or(0);
        let divided = several
            .then(|| self.proc.smaps_rollup(pid).ok().flatten())
            .flatten();
        let (resident, elsewhere) = match &divided {
            Some(all) => (all.pss.0, all.rss.0.saturating_sub(all.pss.0)),
            None => {
                let all = self.proc.statm(pid).ok().flatten();
                (all.map_or(0, |all| all.resident.0), 0)
            }
        };
        let resident = match one.is_held {
            true => resident.min(one.before.share.saturating_add(one.member.fixed)),
            false => resident,
        };
        Size {
            resident,
            elsewhere,
            is_whole: several && divided.is_none(),
        }
    }

    /// A process of the run that is not managed.
    fn unmanaged(&self, pid: u32) -> Option<Taker> {
        let number = i32::try_from(pid).ok()?;
        let (name, resident, is_whole) = match self.proc.smaps_rollup(number) {
            Ok(Some(all)) => (outside::name(pid)?, all.pss.0, false),
            _ => {
                let peak = outside::size(pid)?;
                (peak.name, peak.resident, true)
            }
        };
        (resident > 0).then_some(Taker {
            name,
            pid,
            resident,
            fixed: resident,
            is_whole,
        })
    }

    /// Keeps the processes' sizes at the largest sum, and reports at once if memory that cannot be
    /// managed leaves too little.
    fn note(&mut self, takers: Vec<Taker>, say: &dyn Fn(&str)) {
        let resident = takers.iter().map(|one| one.resident).sum();
        let fixed: u64 = takers.iter().map(|one| one.fixed).sum();
        let left = self.budget.saturating_sub(fixed);
        let is_short = left < self.budget / LEAST_LEFT;
        let since = is_short.then(|| self.short_since.unwrap_or(self.last));
        self.short_since = since;
        let is_long = since.is_some_and(|since| self.last - since >= LEFT_FOR);
        if is_long && !self.has_said {
            self.has_said = true;
            say(&format!(
                "memory that cannot be managed takes {} of --memory {} and leaves {}: {}",
                Bytes(fixed),
                Bytes(self.budget),
                Bytes(left),
                largest(&takers, |one| one.fixed)
            ));
        }
        if resident > self.peak {
            self.peak = resident;
            self.at_peak = takers;
        }
    }

    /// Whether all together have exceeded the budget.
    pub fn has_passed(&self) -> bool {
        has_passed(self.peak, self.budget)
    }

    /// Text if several processes together have exceeded the budget, and which; `None` if they did
    /// not, or if a single one did.
    pub fn passed(&self) -> Option<String> {
        let many = self.at_peak.len();
        (many > 1 && self.has_passed()).then(|| {
            format!(
                "{many} processes together exceeded --memory {}: {} resident, {}, of which {}",
                Bytes(self.budget),
                Bytes(self.peak),
                counted(&self.at_peak),
                largest(&self.at_peak, |one| one.resident)
            )
        })
    }

    /// Largest resident memory of all together at a time.
    pub fn peak_bytes(&self) -> u64 {
        self.peak
    }
}

/// How shared pages count in the sum of `all`.
fn counted(all: &[Taker]) -> String {
    match all.iter().filter(|one| one.is_whole).count() {
        0 => "shared pages counted once".to_owned(),
        whole => format!(
            "an upper limit: shared pages counted in each of {whole} that this user may not look at (not dumpable)"
        ),
    }
}

/// The three largest by `of`.
fn largest(takers: &[Taker], of: fn(&Taker) -> u64) -> String {
    let mut all: Vec<&Taker> = takers.iter().collect();
    all.sort_by_key(|one| std::cmp::Reverse(of(one)));
    let words = |one: &&Taker| format!("{} (process {}) {}", one.name, one.pid, Bytes(of(one)));
    let words: Vec<String> = all.iter().take(3).map(words).collect();
    words.join(", ")
}

fn write(shared: &File, at: usize, bytes: u64) -> Result<()> {
    shared
        .write_all_at(&bytes.to_le_bytes(), at as u64)
        .context("cannot write to the run's shared memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_says_where_shared_pages_count_twice() {
        let taker = |is_whole| Taker {
            name: "agent".to_owned(),
            pid: 7,
            resident: 9,
            fixed: 1,
            is_whole,
        };
        assert_eq!(counted(&[taker(false)]), "shared pages counted once");
        let said = counted(&[taker(true), taker(false), taker(true)]);
        assert!(
            said.starts_with("an upper limit") && said.contains("each of 2 "),
            "{said}"
        );
    }
}
