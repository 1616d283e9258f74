//! What sets slow faults apart, when faults changed, who held locks and how pages were charged:
//! further sections of the text about a function_graph trace.

use crate::corrected::{interval, within};
use crate::fault_paths::{counted_as, wrapped};
use crate::lines::line;
use crate::visible::visible;
use pagewise_model::fault_paths::{
    Changed, ChargeWay, Contrast, DescentStep, FaultPaths, Hold, Holder, Lock, LockWait,
    Overrepresented, SleepTime, TreePattern,
};
use pagewise_model::quantity::{count, counted, percent, signed_percent};
use pagewise_model::units::Nanos;

/// Lines of each list.
const LINES: usize = 5;
/// Changes shown.
const CHANGES: usize = 12;

/// The sections, each after a blank line.
#[must_use]
pub fn render(findings: &FaultPaths, width: usize) -> String {
    let mut text = String::new();
    for contrast in findings
        .contrasts
        .iter()
        .filter(|found| found.class.is_none())
    {
        self::contrast(&mut text, contrast, counted_as(findings));
    }
    changes(&mut text, findings);
    charges(&mut text, findings);
    locks(&mut text, findings);
    trees(&mut text, findings, width);
    text
}

/// Where in the faults the report looks, outermost first; empty for all of each.
#[must_use]
pub fn descent(steps: &[DescentStep]) -> String {
    let mut text = String::new();
    if steps.is_empty() {
        return text;
    }
    line!(&mut text, "Inside the faults, from the outside in");
    for (place, step) in steps.iter().enumerate() {
        let indent = "  ".repeat(place + 1);
        let class = step.class.map_or(String::new(), |class| {
            format!(", of faults of the kind \"{}\"", class.describe())
        });
        let range = match (step.from_ns, step.to_ns) {
            (None, None) => String::new(),
            (from, to) => format!(
                ", that take {} to {}",
                from.map_or("0".to_owned(), |ns| Nanos(ns).to_string()),
                to.map_or("any".to_owned(), |ns| Nanos(ns).to_string())
            ),
        };
        line!(
            &mut text,
            "{indent}{}{class}{range}: {} of {} calls, {} in all",
            visible(&step.name),
            count(step.calls),
            count(step.met),
            Nanos(step.time_ns)
        );
    }
    line!(&mut text);
    text
}

/// What was taken for granted, in sentences.
#[must_use]
pub fn reading(findings: &FaultPaths) -> String {
    let reading = &findings.reading;
    let mut text = String::new();
    let sleep = match reading.sleep_time {
        SleepTime::Assumed => {
            "Durations are taken to include time asleep, as is the tracer's default \
             (sleep-time); the trace does not tell."
        }
        SleepTime::Included => {
            "Durations include time asleep (sleep-time), as waits in the trace show."
        }
        SleepTime::Excluded => {
            "CAUTION: durations leave out time asleep (nosleep-time): waits in the trace are longer \
             than the calls around them."
        }
    };
    line!(&mut text, "{sleep}");
    if let Some(depth) = reading.depth_limit {
        line!(
            &mut text,
            "CAUTION: the trace looks cut {} below the fault (max_graph_depth): calls further down \
             cost time too, which is not corrected for, and kinds may be missed.",
            counted(depth.into(), "level")
        );
    }
    if reading.interrupts_by_place > 0 {
        line!(
            &mut text,
            "{} calls of functions not known as an interrupt's stand where only interrupts do: \
             taken out as such.",
            count(reading.interrupts_by_place)
        );
    }
    text
}

fn contrast(text: &mut String, found: &Contrast, each: &str) {
    let mut part = String::new();
    line!(&mut part);
    line!(
        &mut part,
        "The slowest {} (beyond {}): {} of {} on average, others {}, waits included",
        percent(1.0 - found.quantile),
        Nanos(found.threshold_ns),
        counted(found.tail, each),
        within(found.tail_mean_ns, found.error_ns[0]),
        within(found.body_mean_ns, found.error_ns[1])
    );
    for excess in found.excess.iter().take(LINES) {
        line!(
            &mut part,
            "  {:<38} {:>19} more each {:>7} of the difference",
            visible(&excess.name),
            give_or_take(excess.ns, excess.error_ns),
            signed_percent(excess.share)
        );
    }
    let named = found.functions.iter().take(LINES);
    for (place, function) in named.enumerate() {
        if place == 0 {
            line!(
                &mut part,
                "  more often there beyond chance ({} tests):",
                count(found.tests)
            );
        }
        line!(
            &mut part,
            "    {:<36} {:>7} of slow {each}s {:>7} of others{}",
            visible(&function.name),
            percent(function.tail_share),
            percent(function.body_share),
            along(function)
        );
    }
    text.push_str(&part);
}

fn along(found: &Overrepresented) -> String {
    let names: Vec<_> = found
        .along
        .iter()
        .take(3)
        .map(|name| visible(name))
        .collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("  with {}", names.join(", ")),
    }
}

fn changes(text: &mut String, findings: &FaultPaths) {
    let each = counted_as(findings);
    let changes = &findings.timeline.changes;
    if changes.is_empty() {
        return;
    }
    let mut part = String::new();
    line!(&mut part);
    line!(
        &mut part,
        "Moments at which {each}s changed ({} in all)",
        changes.len()
    );
    for change in changes.iter().take(CHANGES) {
        let at = match change.at_ns {
            Some(ns) => format!("after {}", Nanos(ns)),
            None => format!("after {}", counted(change.faults_before, each)),
        };
        let (what, from, to) = match (change.what, change.class) {
            (Changed::Rate, _) => (
                format!("{each}s a second"),
                rounded(change.before),
                rounded(change.after),
            ),
            (Changed::Mix, class) => (
                format!(
                    "share of \"{}\"",
                    class.map_or("", |class| class.describe())
                ),
                percent(change.before),
                percent(change.after),
            ),
            (Changed::Median, _) => (
                "median".to_owned(),
                nanos(change.before),
                nanos(change.after),
            ),
            (Changed::Tail, _) => (
                "90th percentile".to_owned(),
                nanos(change.before),
                nanos(change.after),
            ),
        };
        line!(&mut part, "  {at:<16} {what}: {from} → {to}");
    }
    text.push_str(&part);
}

fn charges(text: &mut String, findings: &FaultPaths) {
    if findings.charges.is_empty() {
        return;
    }
    let mut part = String::new();
    line!(&mut part);
    line!(&mut part, "Charges to the memory cgroup");
    for charge in &findings.charges {
        let way = match charge.way {
            ChargeWay::Untold => "neither: the root cgroup, or inlined",
            ChargeWay::StockHit => "from the CPU's stock",
            ChargeWay::Refill => "from the cgroup's counters",
            ChargeWay::Reclaim => "after reclaim at the limit",
        };
        let bounds = charge.latency.bounds;
        line!(
            &mut part,
            "  {way:<36} {:>9} faults {:>7}  median {}, 99th percentile {} ({} and {} as traced)",
            count(charge.faults),
            percent(charge.share),
            interval(charge.latency.corrected.p50_ns, bounds.map(|of| of.p50_ns)),
            interval(charge.latency.corrected.p99_ns, bounds.map(|of| of.p99_ns)),
            Nanos(charge.latency.raw.p50_ns),
            Nanos(charge.latency.raw.p99_ns)
        );
    }
    if findings
        .charges
        .iter()
        .all(|charge| charge.way == ChargeWay::Untold)
    {
        line!(
            &mut part,
            "  No consume_stock, page_counter_try_charge or refill_stock is in this trace: the tasks \
             were in the root cgroup, or this kernel has them inlined."
        );
    }
    text.push_str(&part);
}

fn locks(text: &mut String, findings: &FaultPaths) {
    let waits = &findings.lock_waits;
    if waits.locks.is_empty() {
        return;
    }
    let mut part = String::new();
    line!(&mut part);
    line!(&mut part, "Locks (waits included, as traced)");
    for wait in &waits.locks {
        let lock = match wait.lock {
            Lock::Mmap => "mmap lock",
            Lock::Vma => "lock of the area",
            Lock::Rwsem => "rwsem",
            Lock::PercpuRwsem => "percpu rwsem",
            Lock::Folio => "folio lock",
            Lock::Mutex => "mutex",
        };
        line!(
            &mut part,
            "  {:<36} {:>9} {lock}, {} slow; median {}, 99th percentile {}, longest {}; {} of fault time",
            visible(&wait.function),
            count(wait.latency.count),
            count(wait.slow),
            Nanos(wait.latency.p50_ns),
            Nanos(wait.latency.p99_ns),
            Nanos(wait.latency.max_ns),
            percent(wait.share)
        );
    }
    if let Some((tries, beyond)) = area_locks(&waits.locks) {
        line!(
            &mut part,
            "  The lock of the area alone was enough in at least {} of {} faults that tried it ({})",
            count(tries - beyond),
            count(tries),
            percent(self::part(tries - beyond, tries))
        );
    }
    let (known, all) = waits.attributed_ns;
    if all > 0 {
        line!(
            &mut part,
            "  Who kept others waiting for the mmap lock: known for {} of {}",
            Nanos(known),
            Nanos(all)
        );
        if known < all {
            line!(
                &mut part,
                "    for the rest no task of this trace had it: the waiter was woken late or \
                 preempted, or a task that is not traced held it"
            );
        }
    }
    for holder in waits.holders.iter().take(LINES) {
        self::holder(&mut part, holder);
    }
    text.push_str(&part);
}

/// Faults that tried to get the lock of their area alone (since 6.4), and how many at most went on
/// to the mmap lock: others take that one at once.
fn area_locks(locks: &[LockWait]) -> Option<(u64, u64)> {
    let gets = |wanted: Lock| -> u64 {
        let before = locks.iter().filter(|wait| !wait.inside_fault);
        let of_it = before.filter(|wait| wait.lock == wanted);
        of_it.map(|wait| wait.latency.count).sum()
    };
    let tries = gets(Lock::Vma);
    (tries > 0).then(|| (tries, gets(Lock::Mmap).min(tries)))
}

fn holder(text: &mut String, holder: &Holder) {
    let mut part = String::new();
    line!(
        &mut part,
        "    {}-{} {}: {} waits, {}, at most {} at a time{}",
        visible(&holder.task),
        holder.pid,
        match holder.how {
            Hold::Writing => "held it for writing",
            Hold::Reading => "held it for reading",
            Hold::Queued => "was queued to write before them",
        },
        count(holder.waits),
        Nanos(holder.wait_ns),
        Nanos(holder.longest_hold_ns),
        holder
            .doing
            .as_ref()
            .map_or(String::new(), |doing| format!("; {}", visible(doing)))
    );
    text.push_str(&part);
}

fn trees(text: &mut String, findings: &FaultPaths, width: usize) {
    let trees = &findings.trees;
    if trees.is_empty() {
        return;
    }
    let each = counted_as(findings);
    let all = trees.len() as u64 + findings.trees_left_out;
    line!(text);
    line!(
        text,
        "Call trees that {each}s share, by their share of time (repeats folded; {} of {})",
        trees.len().min(LINES),
        count(all)
    );
    for tree in trees.iter().take(LINES) {
        self::tree(text, tree, each, width);
    }
}

/// Lines of an outline.
const OUTLINE_LINES: usize = 4;

fn tree(text: &mut String, tree: &TreePattern, each: &str, width: usize) {
    let whole = match (tree.complete, tree.class) {
        (true, Some(class)) => format!("all of it: {}", class.describe()),
        (true, None) => "all of it".to_owned(),
        (false, Some(class)) => format!("part of: {}", class.describe()),
        (false, None) => "part of several kinds".to_owned(),
    };
    let (least, most) = tree.calls;
    let calls = match least == most {
        true => counted(least, "call"),
        false => format!("{}–{} calls", count(least), count(most)),
    };
    line!(
        text,
        "  {} of time, {}, {whole}",
        percent(tree.corrected_time_share),
        counted(tree.faults, each)
    );
    line!(
        text,
        "      {calls}; mean {}, 99th percentile {}, itself {} ({} of time as traced)",
        within(tree.mean_ns, tree.error_ns),
        within(exact(tree.p99_ns), tree.error_ns),
        percent(part(tree.corrected_self_ns, tree.corrected_total_ns)),
        percent(tree.time_share)
    );
    let outline = visible(&tree.outline);
    let lines = wrapped(&outline, width.saturating_sub(8).max(40));
    for line in lines.iter().take(OUTLINE_LINES) {
        line!(text, "      {line}");
    }
    if lines.len() > OUTLINE_LINES {
        line!(text, "      …");
    }
}

#[allow(clippy::cast_precision_loss, reason = "a share of times")]
fn part(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[allow(clippy::cast_precision_loss, reason = "2^53 ns is 104 days")]
fn exact(ns: u64) -> f64 {
    ns as f64
}

/// A difference, which may be negative, with how far it may be off.
fn give_or_take(ns: f64, error_ns: f64) -> String {
    match error_ns >= 1.0 {
        true => format!("{} ± {}", nanos(ns), nanos(error_ns)),
        false => nanos(ns),
    }
}

fn nanos(ns: f64) -> String {
    let size = Nanos::from_secs_f64(ns.abs() / 1e9);
    if ns < -0.5 {
        format!("−{size}")
    } else {
        size.to_string()
    }
}

fn rounded(value: f64) -> String {
    pagewise_model::quantity::rounded(value)
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
    fn faults_that_went_on_to_the_mmap_lock_are_at_most_those_that_got_it() {
        let areas = got(Lock::Vma, false, 530);
        let before = got(Lock::Mmap, false, 7);
        let inside = got(Lock::Mmap, true, 100);
        let locks = [areas, before.clone(), inside];
        assert_eq!(area_locks(&locks), Some((530, 7)));
        assert_eq!(area_locks(&[before]), None, "kernels before 6.4");
    }
}
