//! Lock holders while faults waited, and how pages were charged to the memory cgroup.

use super::tracing::corrected;
use crate::text::columns::{Row, figures, named, words};
use crate::text::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::fault_paths::{ChargeWay, FaultPaths, Hold, Holder, Lock, LockWait};
use pagewise_model::quantity::{count, counted, percent, share};
use pagewise_model::units::Nanos;

/// Holders shown.
const HOLDERS: usize = 5;

/// How pages were charged, where the trace shows it.
pub fn charges(page: &mut Page, findings: &FaultPaths) {
    let heads = named(
        "way",
        &[
            "faults",
            "share",
            "median",
            "99th percentile",
            "raw p50",
            "raw p99",
        ],
    );
    let rows = findings.charges.iter().map(|charge| {
        let way = match charge.way {
            ChargeWay::Untold => "neither: the root cgroup, or inlined",
            ChargeWay::StockHit => "from the CPU's stock",
            ChargeWay::Refill => "from the cgroup's counters",
            ChargeWay::Reclaim => "after reclaim at the limit",
        };
        let (latency, bounds) = (&charge.latency, charge.latency.bounds);
        Row::new([
            way.to_owned(),
            count(charge.faults),
            percent(charge.share),
            corrected(latency.corrected.p50_ns, bounds.map(|of| of.p50_ns)),
            corrected(latency.corrected.p99_ns, bounds.map(|of| of.p99_ns)),
            Nanos(latency.raw.p50_ns).to_string(),
            Nanos(latency.raw.p99_ns).to_string(),
        ])
    });
    let title = "Charges to the memory cgroup";
    page.table(title, &heads, rows);
    let mut ways = findings.charges.iter().map(|charge| charge.way);
    if !findings.charges.is_empty() && ways.all(|way| way == ChargeWay::Untold) {
        let text = "No consume_stock, page_counter_try_charge or refill_stock is in this trace: the \
                    tasks were in the root cgroup, or this kernel has them inlined.";
        page.indented(2, Ink::Plain, text);
    }
}

/// The locks that faults took, and which tasks kept them waiting.
pub fn locks(page: &mut Page, findings: &FaultPaths) {
    let waits = &findings.lock_waits;
    if waits.locks.is_empty() {
        return;
    }
    let heads = [
        words("function"),
        words("lock"),
        figures("taken"),
        figures("slow"),
        figures("median"),
        figures("99th percentile"),
        figures("longest"),
        figures("of fault time"),
    ];
    let rows = waits.locks.iter().map(|wait| {
        Row::new([
            visible(&wait.function).into_owned(),
            name(wait.lock).to_owned(),
            count(wait.latency.count),
            count(wait.slow),
            Nanos(wait.latency.p50_ns).to_string(),
            Nanos(wait.latency.p99_ns).to_string(),
            Nanos(wait.latency.max_ns).to_string(),
            percent(wait.share),
        ])
    });
    let title = "Locks (waits included, as traced)";
    page.table(title, &heads, rows);
    if let Some((tries, beyond)) = area_locks(&waits.locks) {
        let text = format!(
            "The VMA lock alone was enough in at least {} of {} faults that tried it ({})",
            count(tries - beyond),
            count(tries),
            percent(share(tries - beyond, tries))
        );
        page.indented(2, Ink::Plain, &text);
    }
    attributed(page, waits.attributed_ns);
    for holder in waits.holders.iter().take(HOLDERS) {
        page.indented(4, Ink::Plain, &held(holder));
    }
}

fn name(lock: Lock) -> &'static str {
    match lock {
        Lock::Mmap => "mmap lock",
        Lock::Vma => "per-VMA lock",
        Lock::Rwsem => "rwsem",
        Lock::PercpuRwsem => "percpu rwsem",
        Lock::Folio => "folio lock",
        Lock::Mutex => "mutex",
    }
}

fn attributed(page: &mut Page, (known, all): (u64, u64)) {
    if all == 0 {
        return;
    }
    let text = format!(
        "Who kept others waiting for the mmap lock: known for {} of {}",
        Nanos(known),
        Nanos(all)
    );
    page.indented(2, Ink::Plain, &text);
    if known < all {
        let text = "for the rest, no traced task held it: the waiter was woken late or preempted, or an untraced task held it";
        page.indented(4, Ink::Faint, text);
    }
}

/// Faults that tried to get the VMA lock alone (since 6.4), and an upper bound of those that fell
/// back to the mmap lock: other faults take that at once.
fn area_locks(locks: &[LockWait]) -> Option<(u64, u64)> {
    let gets = |wanted: Lock| -> u64 {
        let before = locks.iter().filter(|wait| !wait.inside_fault);
        let of_it = before.filter(|wait| wait.lock == wanted);
        of_it.map(|wait| wait.latency.count).sum()
    };
    let tries = gets(Lock::Vma);
    (tries > 0).then(|| (tries, gets(Lock::Mmap).min(tries)))
}

fn held(holder: &Holder) -> String {
    let how = match holder.how {
        Hold::Writing => "held it for writing",
        Hold::Reading => "held it for reading",
        Hold::Queued => "was queued to write before them",
    };
    let doing = holder.doing.as_ref();
    format!(
        "{}-{} {how}: {}, {}, at most {} at a time{}",
        visible(&holder.task),
        holder.pid,
        counted(holder.waits, "wait"),
        Nanos(holder.wait_ns),
        Nanos(holder.longest_hold_ns),
        doing.map_or(String::new(), |doing| format!("; {}", visible(doing)))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::fault_paths::Latency;

    fn got(lock: Lock, inside_fault: bool, count: u64) -> LockWait {
        LockWait {
            lock,
            function: String::new(),
            inside_fault,
            slow: 0,
            latency: Latency {
                count,
                ..Latency::default()
            },
            share: 0.0,
        }
    }

    #[test]
    fn faults_on_the_mmap_lock_are_at_most_those_that_got_it() {
        let areas = got(Lock::Vma, false, 530);
        let before = got(Lock::Mmap, false, 7);
        let inside = got(Lock::Mmap, true, 100);
        let locks = [areas, before.clone(), inside];
        assert_eq!(area_locks(&locks), Some((530, 7)));
        assert_eq!(area_locks(&[before]), None, "kernels before 6.4");
    }
}
