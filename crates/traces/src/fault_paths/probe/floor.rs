//! The tracer's cost, estimated from the trace itself.
//!
//! Self time is real work, plus the cost inside the call, plus the cost outside each call that it
//! made. Kernels have many functions that do almost nothing, so that over all functions
//!
//! ```text
//! inside  = least self time of calls that make none
//! outside = least (self time − inside) / calls made
//! ```
//!
//! Neither part determines the other: Linux 4.18 takes the time after it has written its record,
//! and has 0.15 µs inside and 1.25 outside, while 6.1 has 0.67 and 0.67, and 7.2 0.75 and 0.97. A
//! function's time is the median of its calls, which is robust against a few odd calls; and the
//! minimum is one on which several functions agree, which is robust against one odd function.

use super::super::collector::Collector;
use super::signs::Own;
use pagewise_model::fault_paths::{Calibration, Source};

/// Calls of a function, with the same number of calls made, needed for a meaningful median.
const ENOUGH: usize = 10;
/// Functions that must agree at the minimum…
const AGREEING: usize = 3;
/// … to within this factor.
const AGREEMENT: f64 = 1.03;
/// Real work of a call that does nothing, and of calling it, relative to the cost of tracing it: a
/// trace cannot separate the two. Compared with root-only captures on 5.10 to 7.2 the cost was
/// found to within 0.5 %.
const REAL_WORK: f64 = 0.0075;

/// The minimum of both parts.
#[derive(Clone, Debug)]
pub(super) struct Floors {
    pub inside: Floor,
    pub outside: Floor,
}

/// The minimum of one part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Floor {
    pub ns: f64,
    pub error_ns: f64,
    /// The tenth and ninetieth percentile of single calls at the floor.
    pub p10: f64,
    pub p90: f64,
}

impl Floors {
    pub(super) fn calibration(&self) -> Calibration {
        let per_call_ns = self.inside.ns + self.outside.ns;
        Calibration {
            per_call_ns,
            inside_ns: self.inside.ns,
            error_ns: self.inside.error_ns + self.outside.error_ns + REAL_WORK * per_call_ns,
            source: Source::OwnTrace,
            withdrawn: None,
        }
    }
}

pub(super) fn floors(full: &Collector) -> Option<Floors> {
    let groups = full.probe.groups(ENOUGH);
    let leaves = groups.iter().filter(|own| own.direct_calls == 0);
    let inside = floor(leaves.copied().collect())?;
    let callers = groups.iter().filter(|own| own.direct_calls > 0);
    let per_call = callers.map(|own| {
        let per_call = |ns: f64| (ns - inside.ns) / f64::from(own.direct_calls);
        Own {
            p10: per_call(own.p10),
            p50: per_call(own.p50),
            p90: per_call(own.p90),
            ..*own
        }
    });
    let outside = floor(per_call.collect())?;
    Some(Floors { inside, outside })
}

/// The least median on which several functions agree. Its error is their disagreement, or the
/// distance to lower medians if that is larger, plus half the spread of one function's calls: the
/// cost of many calls is closer to the mean, and if calls differ, some of them are always odd.
fn floor(mut groups: Vec<Own>) -> Option<Floor> {
    groups.retain(|own| own.p50 > 0.0);
    groups.sort_by(|a, b| a.p50.total_cmp(&b.p50));
    let starts = 0..groups.len();
    let agreed = starts.filter_map(|start| agreeing(&groups[start..])).next();
    let (at, width) = match agreed {
        Some((own, last)) => (own, (last - own.p50).max(own.p50 - groups[0].p50)),
        // Too few functions to separate real work from the cost: it may be anything below.
        None => (*groups.first()?, groups.first()?.p50),
    };
    let spread = (at.p90 - at.p10) / 2.0;
    Some(Floor {
        ns: at.p50,
        error_ns: width + spread,
        p10: at.p10,
        p90: at.p90,
    })
}

/// The first of these groups, and the median of the last function that agrees with it.
fn agreeing(from: &[Own]) -> Option<(Own, f64)> {
    let first = from.first()?;
    let mut functions: Vec<u32> = Vec::with_capacity(AGREEING);
    for own in from
        .iter()
        .take_while(|own| own.p50 <= first.p50 * AGREEMENT)
    {
        if !functions.contains(&own.function) {
            functions.push(own.function);
        }
        if functions.len() == AGREEING {
            return Some((*first, own.p50));
        }
    }
    None
}
