//! Waits for locks, and the holders of the mmap lock meanwhile.
//!
//! The events `mmap_lock_start_locking`, `mmap_lock_acquire_returned` and `mmap_lock_released`
//! (`include/trace/events/mmap_lock.h`, since 5.11) show by task which address space's lock is
//! waited for and which task has it; [`holds`] describes how waits are attributed.

mod holds;

use super::tally::Tally;
use holds::{Blamed, Holds};
use pagewise_formats::function_graph::{NameId, Names};
use pagewise_model::fault_paths::{Hold, Holder, Lock, LockWait, LockWaits};
use rustc_hash::FxHashMap;

const MOST_HOLDERS: usize = 20;

/// The lock that a function acquires, by its name without suffixes.
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

/// Acquisitions of locks, and holders of the mmap lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Locks {
    /// By lock, function and whether inside a fault: times, and the number of slow ones.
    gets: FxHashMap<(Lock, u32, bool), (Tally, u64)>,
    holds: Holds,
    tasks: FxHashMap<u32, String>,
}

impl Locks {
    /// Records that a lock was acquired in `ns`.
    pub(super) fn got(&mut self, lock: Lock, name: u32, inside: bool, ns: u64, slow: bool) {
        let (tally, slowly) = self.gets.entry((lock, name, inside)).or_default();
        tally.record(ns);
        *slowly += u64::from(slow);
    }

    /// Takes an event of another tracer.
    pub(super) fn event(&mut self, pid: Option<u32>, time: Option<u64>, text: &[u8]) {
        let is_switch = text.starts_with(b"sched_switch:");
        // Context switches matter only to tasks that have a lock.
        let is_wanted = text.starts_with(b"mmap_lock_") || is_switch && self.holds.has_any();
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
            self.holds.start(mm, pid, time, write);
        } else if text.starts_with("mmap_lock_acquire_returned") {
            let got = !text.contains(" success=false");
            self.holds.returned(mm, pid, time, write, got);
        } else if text.starts_with("mmap_lock_released") {
            self.holds.released(mm, pid, time, write);
        }
    }

    fn switch(&mut self, time: u64, text: &str) {
        let Some((prev, next)) = text.rsplit_once(" ==> ") else {
            return;
        };
        if let Some((task, pid)) = task(prev, "prev_") {
            self.tasks.entry(pid).or_insert_with(|| task.to_owned());
            self.holds.left(pid, time);
        }
        if let Some((task, pid)) = task(next, "next_") {
            self.tasks.entry(pid).or_insert_with(|| task.to_owned());
            self.holds.came(pid, time);
        }
    }

    /// The findings; `fault_ns` is the whole time of all faults.
    pub(super) fn findings(&self, names: &Names, fault_ns: u64) -> LockWaits {
        let mut locks: Vec<LockWait> = self
            .gets
            .iter()
            .map(|(&(lock, name, inside_fault), (tally, slow))| {
                let latency = super::figures::figures(&tally.histogram());
                LockWait {
                    lock,
                    function: names.text(NameId(name)).to_owned(),
                    inside_fault,
                    slow: *slow,
                    share: super::figures::ratio(latency.sum_ns, fault_ns),
                    latency,
                }
            })
            .collect();
        locks.sort_by(|x, y| {
            let by_time = y.latency.sum_ns.cmp(&x.latency.sum_ns);
            by_time.then_with(|| x.function.cmp(&y.function))
        });
        let blamed = self.holds.blamed.iter().filter(|(_, sums)| sums.waits > 0);
        let mut holders: Vec<Holder> = blamed
            .map(|(&(pid, how), sums)| Holder {
                pid,
                task: self.tasks.get(&pid).cloned().unwrap_or_default(),
                how,
                doing: off_share(how, sums),
                waits: sums.waits,
                wait_ns: sums.wait_ns,
                longest_hold_ns: sums.longest,
            })
            .collect();
        holders.sort_by_key(|holder| (std::cmp::Reverse(holder.wait_ns), holder.pid, holder.how));
        holders.truncate(MOST_HOLDERS);
        let waited = self.holds.waited;
        LockWaits {
            locks,
            holders,
            attributed: (waited.known.0, waited.all.0),
            attributed_ns: (waited.known.1, waited.all.1),
        }
    }
}

/// Share of its holds during which a task was not running.
fn off_share(how: Hold, sums: &Blamed) -> Option<String> {
    if how == Hold::Queued {
        return None;
    }
    let percent = (sums.off * 100).checked_div(sums.had)?;
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
        // The writer waited too, but for no task, and so did a reader of another lock.
        assert_eq!(found.attributed, (1, 3));
        assert_eq!(found.attributed_ns, (9 * ms, 19 * ms));
        let [holder] = &found.holders[..] else {
            panic!("one holder: {found:?}");
        };
        let who = (holder.pid, &*holder.task, holder.how);
        assert_eq!(who, (7, "w", Hold::Writing));
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
