//! What a run shows: at its peak, or at its end.
//!
//! Many programs free what they hold just before they end. What is free then was in use until then: it
//! counts only if looks while the program ran saw it free as well, for long enough.

use crate::finding::{finding, worth};
use pagewise_model::memory::{
    MemoryFinding, MemoryKind, MemoryMoment, MemoryPoint, MemoryVerdict, MemoryWhen,
};

/// The last part of the run (1 in so many) over which nearly all that is free at the end must have been
/// free. A program that frees everything in order to end has freed nearly all of it only in the last tenth
/// of the time that this takes.
const SETTLED: u64 = 10;
const NEARLY_ALL_PERCENT: u64 = 90;
/// The last part of the run over which as much must have been free as is worth a verdict.
const LONG: u64 = 4;
/// How much of what is resident at the end a look must have seen to stand for the run.
const MOST_PERCENT: u64 = 75;
/// Looks are of one size if they differ by less than this part (1 in so many).
const SAME: u64 = 20;

/// The finding about a run, and the moments that show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What is said about one of the moments.
    pub finding: MemoryFinding,
    /// The largest look, where it tells more than the end, and the end.
    pub moments: Vec<MemoryMoment>,
}

/// Judges a run by its largest look, the look at its end, and the sums of all looks.
#[must_use]
pub fn judge(looks: Largest, end: Option<MemoryMoment>, course: &[MemoryPoint]) -> Judged {
    let Largest {
        best: largest,
        fullest,
        ..
    } = looks;
    let Some(end) = end else {
        return Judged {
            finding: largest.as_ref().map(finding).unwrap_or_default(),
            moments: largest.into_iter().collect(),
        };
    };
    let at_end = finding(&end);
    let is_settled = !is_waste(at_end.verdict) || lasts_to(&end, &at_end, course);
    let is_brief = |one: &MemoryMoment| {
        let found = finding(one);
        is_waste(found.verdict) && !lasts(&found, &end, course)
    };
    // A child that freed everything in order to end.
    let largest = match largest {
        Some(one) if is_brief(&one) => fullest.filter(|full| !is_brief(full)).or(Some(one)),
        largest => largest,
    };
    let is_wanted =
        |one: &MemoryMoment| one.total() > end.total() || (!is_settled && stands_for(one, &end));
    let alone = |finding, end| Judged {
        finding,
        moments: vec![end],
    };
    let Some(mut largest) = largest.filter(is_wanted) else {
        return match is_settled {
            true => alone(at_end, end),
            false => alone(freed_to_end(at_end), end),
        };
    };
    if largest.total() <= end.total() {
        largest.when = MemoryWhen::Running;
    }
    let at_largest = finding(&largest);
    if !is_settled && is_brief(&largest) {
        return alone(freed_to_end(at_end), end);
    }
    let finding = match at_end.verdict {
        // What was leaked at the end was leaked before.
        MemoryVerdict::Leak => at_end,
        ended if is_waste(ended) && is_settled && weighs_more(&at_end, &at_largest, &largest) => {
            at_end
        }
        _ => at_largest,
    };
    Judged {
        finding,
        moments: vec![largest, end],
    }
}

/// Whether the verdict is about memory that is free.
fn is_waste(verdict: MemoryVerdict) -> bool {
    matches!(
        verdict,
        MemoryVerdict::Retention | MemoryVerdict::Fragmentation | MemoryVerdict::Bloat
    )
}

/// Bytes of a look that such a verdict is about.
fn wasted(point: &MemoryPoint, verdict: MemoryVerdict) -> u64 {
    match verdict {
        MemoryVerdict::Retention => {
            point.bytes(MemoryKind::FreedKept) + point.bytes(MemoryKind::Reserve)
        }
        MemoryVerdict::Fragmentation => point.bytes(MemoryKind::Pinned),
        MemoryVerdict::Bloat => point.bytes(MemoryKind::HugeBloat),
        _ => 0,
    }
}

/// Whether what is free at the end was free in the last part of the run, too.
fn lasts_to(end: &MemoryMoment, found: &MemoryFinding, course: &[MemoryPoint]) -> bool {
    let Some(elapsed) = end.elapsed_ns else {
        return true;
    };
    let free_for = |least: u64| {
        let before = course.iter().filter(|point| point.elapsed_ns <= elapsed);
        let same = before
            .rev()
            .take_while(|point| wasted(point, found.verdict) >= least);
        same.last().map_or(0, |first| elapsed - first.elapsed_ns)
    };
    free_for(found.bytes.0 / 100 * NEARLY_ALL_PERCENT) >= elapsed / SETTLED
        || free_for(worth(end.total())) >= elapsed / LONG
}

/// Whether half as much as was found was free for a part of the run.
fn lasts(found: &MemoryFinding, end: &MemoryMoment, course: &[MemoryPoint]) -> bool {
    let is_free = |point: &MemoryPoint| wasted(point, found.verdict) >= found.bytes.0 / 2;
    let pairs = course.windows(2);
    let time: u64 = pairs
        .filter(|pair| pair.iter().all(is_free))
        .map(|pair| pair[1].elapsed_ns.saturating_sub(pair[0].elapsed_ns))
        .sum();
    end.elapsed_ns
        .is_none_or(|elapsed| time >= elapsed / SETTLED)
}

/// Whether nearly as much was resident at this look as at the end.
fn stands_for(largest: &MemoryMoment, end: &MemoryMoment) -> bool {
    largest.total().0 / MOST_PERCENT >= end.total().0 / 100
}

/// Whether what is free at the end is worth a verdict beside the largest look.
fn weighs_more(end: &MemoryFinding, at_largest: &MemoryFinding, largest: &MemoryMoment) -> bool {
    let is_more = !is_waste(at_largest.verdict) || end.bytes >= at_largest.bytes;
    is_more && end.bytes.0 >= worth(largest.total())
}

fn freed_to_end(found: MemoryFinding) -> MemoryFinding {
    MemoryFinding {
        verdict: MemoryVerdict::FreedToEnd,
        returnable: None,
        fixes: Vec::new(),
        ..found
    }
}

/// The look that stands for the run: the largest, and of those of its size the one with most in use.
#[derive(Debug, Default)]
pub struct Largest {
    size: u64,
    best: Option<MemoryMoment>,
    /// The look with most in use, of those that may stand for the run.
    fullest: Option<MemoryMoment>,
}

impl Largest {
    /// Takes the next look.
    pub fn add(&mut self, moment: MemoryMoment) {
        let total = moment.total().0;
        self.size = self.size.max(total);
        let is_of_this_size = |total: u64| total >= self.size - self.size / SAME;
        let may_stand = |total: u64| total / MOST_PERCENT >= self.size / 100;
        let is_fuller = match &self.fullest {
            Some(full) if may_stand(full.total().0) => in_use(&moment) > in_use(full),
            _ => true,
        };
        if may_stand(total) && is_fuller {
            self.fullest = Some(moment.clone());
        }
        let is_better = match &self.best {
            Some(best) if is_of_this_size(best.total().0) => {
                is_of_this_size(total) && in_use(&moment) > in_use(best)
            }
            _ => is_of_this_size(total),
        };
        if is_better {
            self.best = Some(moment);
        }
    }

    /// What it is.
    #[must_use]
    pub fn into_moment(self) -> Option<MemoryMoment> {
        self.best
    }
}

/// All but what is known to be free.
fn in_use(moment: &MemoryMoment) -> u64 {
    let point = MemoryPoint::new(moment, 0);
    let free = [
        MemoryVerdict::Retention,
        MemoryVerdict::Fragmentation,
        MemoryVerdict::Bloat,
    ];
    let free: u64 = free.iter().map(|verdict| wasted(&point, *verdict)).sum();
    point.resident.0.saturating_sub(free)
}

#[cfg(test)]
mod tests;
