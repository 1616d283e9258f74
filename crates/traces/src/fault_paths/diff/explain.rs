//! The components of a difference of means, which add up to it.
//!
//! Faults of kind *c* make up the share p_c and take m_c on average. Between two traces, with a bar
//! for the average of both (Kitagawa, 1955):
//!
//! ```text
//! Δ Σ p_c m_c  =  Σ Δp_c (m̄_c − m̄)        the mix: more faults of slow kinds
//!              +  Σ p̄_c Δm_c               the same kind takes longer …
//! ```
//!
//! and Δm_c is the sum of the changes of all its functions' self times and of its waits.

use super::super::ranked::{ClassSums, Sums, over};
use super::super::signature::Class;
use pagewise_model::fault_diff::{Explanation, Pair, Pairs, Part, PartCause};
use std::collections::BTreeSet;

/// Parts shown; the others are summed up.
const MOST_PARTS: usize = 40;

const WAITS: [PartCause; 4] = [
    PartCause::Runnable,
    PartCause::Blocked,
    PartCause::OffCpu,
    PartCause::LockBefore,
];

/// The difference of both means, B minus A, in parts.
pub(super) fn explain(a: &Sums<'_>, b: &Sums<'_>) -> Explanation {
    let (mean_a, mean_b) = (a.mean(), b.mean());
    let overall = ((mean_a.0 + mean_b.0) / 2.0, (mean_a.1 + mean_b.1) / 2.0);
    let classes: BTreeSet<Class> = a
        .by_class
        .keys()
        .chain(b.by_class.keys())
        .copied()
        .collect();
    let none = ClassSums::default();
    let mut parts = Vec::new();
    for class in classes {
        let of = |sums: &'_ Sums<'_>| sums.by_class.contains_key(&class);
        let in_a = a.by_class.get(&class).unwrap_or(&none);
        let in_b = b.by_class.get(&class).unwrap_or(&none);
        let (share_a, share_b) = (over(in_a.faults, a.faults), over(in_b.faults, b.faults));
        // A kind that one trace lacks belongs entirely to the mix: its mean there is taken from the
        // other trace.
        let (class_a, class_b) = match (of(a), of(b)) {
            (true, false) => (in_a.mean(), in_a.mean()),
            (false, true) => (in_b.mean(), in_b.mean()),
            _ => (in_a.mean(), in_b.mean()),
        };
        let mean = ((class_a.0 + class_b.0) / 2.0, (class_a.1 + class_b.1) / 2.0);
        let change = share_b - share_a;
        parts.push(Part {
            cause: PartCause::Mix,
            class: Some(class),
            function: None,
            figures: Pair {
                a: share_a,
                b: share_b,
            },
            ns: change * (mean.1 - overall.1),
            raw_ns: change * (mean.0 - overall.0),
        });
        if of(a) && of(b) {
            let share = f64::midpoint(share_a, share_b);
            within(class, in_a, in_b, share, &mut parts);
        }
    }
    let largest = |part: &Part| part.ns.abs().max(part.raw_ns.abs() * 1e-6);
    parts.retain(|part| part.ns != 0.0 || part.raw_ns != 0.0);
    parts.sort_by(|x, y| largest(y).total_cmp(&largest(x)));
    let rest = parts.split_off(parts.len().min(MOST_PARTS));
    if !rest.is_empty() {
        parts.push(Part {
            cause: PartCause::Rest,
            class: None,
            function: None,
            figures: Pair::default(),
            ns: rest.iter().map(|part| part.ns).sum(),
            raw_ns: rest.iter().map(|part| part.raw_ns).sum(),
        });
    }
    Explanation {
        figures: Pairs {
            raw: Pair {
                a: mean_a.0,
                b: mean_b.0,
            },
            corrected: Pair {
                a: mean_a.1,
                b: mean_b.1,
            },
        },
        change_ns: mean_b.1 - mean_a.1,
        parts,
        sentences: Vec::new(),
    }
}

/// Why faults of the same kind take longer.
fn within(class: Class, a: &ClassSums<'_>, b: &ClassSums<'_>, share: f64, parts: &mut Vec<Part>) {
    let functions: BTreeSet<&str> = a.own.keys().chain(b.own.keys()).copied().collect();
    for function in functions {
        let mean = |sums: &ClassSums<'_>| {
            let (raw, corrected) = sums.own.get(function).copied().unwrap_or_default();
            (over(raw, sums.faults), over(corrected, sums.faults))
        };
        let (mean_a, mean_b) = (mean(a), mean(b));
        parts.push(Part {
            cause: PartCause::Function,
            class: Some(class),
            function: Some(function.to_owned()),
            figures: Pair {
                a: mean_a.1,
                b: mean_b.1,
            },
            ns: share * (mean_b.1 - mean_a.1),
            raw_ns: share * (mean_b.0 - mean_a.0),
        });
    }
    for (at, cause) in WAITS.into_iter().enumerate() {
        let figures = Pair {
            a: over(a.waits[at], a.faults),
            b: over(b.waits[at], b.faults),
        };
        let change = figures.b - figures.a;
        parts.push(Part {
            cause,
            class: Some(class),
            function: None,
            figures,
            ns: share * change,
            raw_ns: share * change,
        });
    }
}
