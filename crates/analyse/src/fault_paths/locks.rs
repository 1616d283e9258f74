//! Waits for locks, and who held the mmap lock meanwhile.
//!
//! The events `mmap_lock_start_locking`, `mmap_lock_acquire_returned` and `mmap_lock_released`
//! (`include/trace/events/mmap_lock.h`, since 5.11) tell by task who waits for which address
//! space's lock and who holds it. A wait is laid to whoever held the lock for writing while it
//! lasted; readers don't keep readers out.

use super::tally::Tally;
use pagewise_model::fault_paths::{Holder, Lock, LockWait, LockWaits};
use pagewise_model::formats::function_graph::{NameId, Names};
use rustc_hash::FxHashMap;

/// Waits below this are the tracer's own time between two events, ns.
const SHORTEST_WAIT: u64 = 100_000;
/// Ended holds of one lock that are remembered.
const MOST_HOLDS: usize = 64;
const MOST_HOLDERS: usize = 20;

/// The lock that a function gets, by its name without suffixes.
pub(super) fn lock_of(base: &str) -> Option<Lock> {
    Some(match base {
        "lock_mm_and_find_vma" => Lock::Mmap,
        "lock_vma_under_rcu" | "vma_start_read" => Lock::Vma,
        "down_read"
        | "down_read_killable"
        | "rwsem_down_read_slowpath"
        | "rwsem_down_read_failed" => Lock::Rwsem,
        "percpu_down_read" | "__percpu_down_read" => Lock::PercpuRwsem,
        "folio_wait_bit_common"
        | "__folio_lock"
        | "__folio_lock_or_retry"
        | "__lock_page"
        | "__lock_page_or_retry" => Lock::Folio,
        "mutex_lock" | "mutex_lock_killable" | "__mutex_lock" => Lock::Mutex,
        _ => return None,
    })
}

/// Getting locks, and holding the mmap lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Locks {
    /// By lock, function and whether inside a fault: times, and how many were slow.
    gets: FxHashMap<(Lock, u32, bool), (Tally, u64)>,
    /// By address space.
    holds: FxHashMap<u64, Vec<Hold>>,
    waiting: FxHashMap<u32, u64>,
    off_since: FxHashMap<u32, u64>,
    tasks: FxHashMap<u32, String>,
    holders: FxHashMap<u32, Sums>,
    attributed: (u64, u64),
    attributed_ns: (u64, u64),
}

/// A task's hold for writing.
#[derive(Clone, Copy, Debug)]
struct Hold {
    pid: u32,
    from: u64,
    to: Option<u64>,
    /// Time off the CPU meanwhile.
    off: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    waits: u64,
    wait_ns: u64,
    longest: u64,
    held: u64,
    off: u64,
}

impl Locks {
    /// Notes that a lock was got in `ns`.
    pub(super) fn got(&mut self, lock: Lock, name: u32, inside: bool, ns: u64, slow: bool) {
        let (tally, slowly) = self.gets.entry((lock, name, inside)).or_default();
        tally.record(ns);
        *slowly += u64::from(slow);
    }

    /// Takes an event of another tracer.
    pub(super) fn event(&mut self, pid: Option<u32>, time: Option<u64>, text: &[u8]) {
        let is_wanted = text.starts_with(b"mmap_lock_") || text.starts_with(b"sched_switch:");
        let Some(time) = time.filter(|_| is_wanted) else {
            return;
        };
        let text = String::from_utf8_lossy(text);
        if let Some(switch) = text.strip_prefix("sched_switch:") {
            return self.switch(time, switch);
        }
        let (Some(pid), Some(mm)) = (pid, mm_of(&text)) else {
            return;
        };
        let write = text.contains(" write=true");
        if text.starts_with("mmap_lock_start_locking") {
            self.waiting.insert(pid, time);
        } else if text.starts_with("mmap_lock_acquire_returned") {
            let since = self.waiting.remove(&pid);
            if text.contains(" success=false") {
                return;
            }
            if let (Some(since), false) = (since, write) {
                self.waited(mm, pid, since, time);
            }
            // Whoever gets the lock shows that no one holds it for writing any more: it may have
            // been downgraded, which has no event of its own but another return.
            self.release(mm, time);
            if write {
                self.hold(mm, pid, time);
            }
        } else if text.starts_with("mmap_lock_released") && write {
            self.release(mm, time);
        }
    }

    fn hold(&mut self, mm: u64, pid: u32, from: u64) {
        let holds = self.holds.entry(mm).or_default();
        if holds.len() >= MOST_HOLDS {
            holds.remove(0);
        }
        holds.push(Hold {
            pid,
            from,
            to: None,
            off: 0,
        });
    }

    /// Ends the hold for writing, if there is one.
    fn release(&mut self, mm: u64, time: u64) {
        let holds = self.holds.get_mut(&mm).into_iter().flatten();
        for hold in holds.filter(|hold| hold.to.is_none()) {
            hold.to = Some(time);
            let sums = self.holders.entry(hold.pid).or_default();
            sums.held += time.saturating_sub(hold.from);
            sums.off += hold.off;
        }
    }

    /// Lays a wait to whoever held the lock for writing.
    fn waited(&mut self, mm: u64, pid: u32, since: u64, until: u64) {
        let wait = until.saturating_sub(since);
        if wait < SHORTEST_WAIT {
            return;
        }
        self.attributed.1 += 1;
        self.attributed_ns.1 += wait;
        let mut known = 0;
        for hold in self.holds.get(&mm).into_iter().flatten() {
            let to = hold.to.unwrap_or(until);
            let both = to.min(until).saturating_sub(hold.from.max(since));
            if both > 0 && hold.pid != pid {
                known += both;
                let sums = self.holders.entry(hold.pid).or_default();
                sums.waits += 1;
                sums.wait_ns += both;
                sums.longest = sums.longest.max(to.saturating_sub(hold.from));
            }
        }
        self.attributed.0 += u64::from(known > 0);
        self.attributed_ns.0 += known.min(wait);
    }

    fn switch(&mut self, time: u64, text: &str) {
        let Some((prev, next)) = text.rsplit_once(" ==> ") else {
            return;
        };
        if let Some((task, pid)) = task(prev, "prev_") {
            self.tasks.entry(pid).or_insert_with(|| task.to_owned());
            self.off_since.insert(pid, time);
        }
        let Some((task, pid)) = task(next, "next_") else {
            return;
        };
        self.tasks.entry(pid).or_insert_with(|| task.to_owned());
        let Some(since) = self.off_since.remove(&pid) else {
            return;
        };
        for hold in self.holds.values_mut().flatten() {
            if hold.pid == pid && hold.to.is_none() {
                hold.off += time.saturating_sub(since.max(hold.from));
            }
        }
    }

    /// The findings; `fault_ns` is the whole time of all faults.
    pub(super) fn findings(&self, names: &Names, fault_ns: u64) -> LockWaits {
        let mut locks: Vec<LockWait> = self
            .gets
            .iter()
            .map(|(&(lock, name, inside_fault), (tally, slow))| {
                let latency = super::analyse::figures(&tally.histogram());
                LockWait {
                    lock,
                    function: names.text(NameId(name)).to_owned(),
                    inside_fault,
                    slow: *slow,
                    share: super::analyse::ratio(latency.sum_ns, fault_ns),
                    latency,
                }
            })
            .collect();
        locks.sort_by(|x, y| {
            let by_time = y.latency.sum_ns.cmp(&x.latency.sum_ns);
            by_time.then_with(|| x.function.cmp(&y.function))
        });
        let mut holders: Vec<Holder> = self
            .holders
            .iter()
            .filter(|(_, sums)| sums.waits > 0)
            .map(|(&pid, sums)| Holder {
                pid,
                task: self.tasks.get(&pid).cloned().unwrap_or_default(),
                write: true,
                doing: off_share(sums),
                waits: sums.waits,
                wait_ns: sums.wait_ns,
                longest_hold_ns: sums.longest,
            })
            .collect();
        holders.sort_by_key(|holder| (std::cmp::Reverse(holder.wait_ns), holder.pid));
        holders.truncate(MOST_HOLDERS);
        LockWaits {
            locks,
            holders,
            attributed: self.attributed,
            attributed_ns: self.attributed_ns,
        }
    }
}

/// How much of its holds a task was not running.
fn off_share(sums: &Sums) -> Option<String> {
    let percent = (sums.off * 100).checked_div(sums.held)?;
    Some(match percent {
        0 => "on the CPU while it held the lock".to_owned(),
        percent => format!("off the CPU for {percent} % of the time it held the lock"),
    })
}

fn mm_of(text: &str) -> Option<u64> {
    let rest = text.split_once("mm=")?.1;
    let digits = rest.split(' ').next()?.trim_start_matches("0x");
    u64::from_str_radix(digits, 16).ok()
}

/// `prev_comm=a prev_pid=1 …` or, as trace-cmd prints it, `a:1 [120] S`.
fn task<'a>(text: &'a str, side: &str) -> Option<(&'a str, u32)> {
    let text = text.trim();
    if let Some((comm, rest)) = text.rsplit_once(&format!(" {side}pid=")) {
        let pid = rest.split(' ').next()?.parse().ok()?;
        let comm = comm.strip_prefix(&format!("{side}comm=")).unwrap_or(comm);
        return (pid > 0).then_some((comm, pid));
    }
    let (comm, pid) = text.rsplit_once(" [")?.0.rsplit_once(':')?;
    let pid = pid.parse().ok()?;
    (pid > 0).then_some((comm, pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_laid_to_the_writer_that_slept_on_the_lock() {
        let mut locks = Locks::default();
        let ms = 1_000_000;
        for (pid, at, text) in [
            (
                7,
                0,
                "mmap_lock_start_locking: mm=000000aa memcg_path=/ write=true",
            ),
            (
                7,
                1,
                "mmap_lock_acquire_returned: mm=000000aa memcg_path=/ write=true success=true",
            ),
            (
                8,
                2,
                "mmap_lock_start_locking: mm=000000aa memcg_path=/ write=false",
            ),
            (
                7,
                3,
                "sched_switch: prev_comm=w prev_pid=7 prev_prio=120 prev_state=R ==> next_comm=r next_pid=8 next_prio=120",
            ),
            (
                8,
                8,
                "sched_switch: prev_comm=r prev_pid=8 prev_prio=120 prev_state=D ==> next_comm=w next_pid=7 next_prio=120",
            ),
            (
                7,
                11,
                "mmap_lock_released: mm=000000aa memcg_path=/ write=true",
            ),
            (
                8,
                12,
                "mmap_lock_acquire_returned: mm=000000aa memcg_path=/ write=false success=true",
            ),
            (
                9,
                12,
                "mmap_lock_start_locking: mm=000000bb memcg_path=/ write=false",
            ),
            (
                9,
                20,
                "mmap_lock_acquire_returned: mm=000000bb memcg_path=/ write=false success=true",
            ),
        ] {
            locks.event(Some(pid), Some(at * ms), text.as_bytes());
        }
        let found = locks.findings(&Names::default(), 100);
        assert_eq!(found.attributed, (1, 2));
        assert_eq!(found.attributed_ns, (9 * ms, 18 * ms));
        let [holder] = &found.holders[..] else {
            panic!("one holder: {found:?}");
        };
        assert_eq!((holder.pid, &*holder.task, holder.write), (7, "w", true));
        assert_eq!(
            (holder.waits, holder.wait_ns, holder.longest_hold_ns),
            (1, 9 * ms, 10 * ms)
        );
        assert_eq!(
            holder.doing.as_deref(),
            Some("off the CPU for 50 % of the time it held the lock")
        );
    }
}
