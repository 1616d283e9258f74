//! The cost as a trace shows it by itself.
//!
//! Own time is real work, plus the cost inside the call, plus the cost outside each call that it
//! made. Kernels have many functions that hardly do anything, so that over all functions
//!
//! ```text
//! inside  = least own time of calls that make none
//! outside = least (own time − inside) / calls made
//! ```
//!
//! Neither says anything of the other: Linux 4.18 takes the time after it has written its record,
//! and has 0.15 µs inside and 1.25 outside where 6.1 has 0.67 and 0.67, and 7.2 0.75 and 0.97.
//! A function's time is the median of its calls, which a few odd calls don't move; and the least
//! is one that several functions agree on, which one odd function doesn't move.

use super::super::collector::Collector;
use super::fit::fitting;
use super::signs::Own;
use pagewise_model::fault_paths::{Calibration, Source};

/// Calls of a function, with the same number of calls made, before their median means anything.
const ENOUGH: usize = 10;
/// Functions that agree where the least lies…
const AGREEING: usize = 3;
/// … to within this factor.
const AGREEMENT: f64 = 1.03;
/// Real work of a call that does nothing, and of calling it, as a share of what tracing it costs:
/// no trace tells it apart. Against captures of the root alone on 5.10 to 7.2 the cost was found
/// to within 0.5 %.
const REAL_WORK: f64 = 0.0075;

/// The cost as the trace itself shows it; nothing where it shows too few calls, and withdrawn
/// where it does not fit the trace's faults.
#[must_use]
pub fn estimate(full: &Collector) -> Calibration {
    match floors(full) {
        Some(floors) => fitting(full, floors.calibration(), Some(&floors)),
        None => Calibration::nothing(),
    }
}

/// What is least, of both parts.
#[derive(Clone, Debug)]
pub(super) struct Floors {
    pub inside: Floor,
    pub outside: Floor,
}

/// The least of one part.
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

/// The least median that several functions agree on. It is off by what they disagree, or by how
/// far below them others are; and by half
/// of how far the calls of one function are apart: what many calls cost is nearer to the mean, and
/// where calls differ, some of them are odd all the time.
fn floor(mut groups: Vec<Own>) -> Option<Floor> {
    groups.retain(|own| own.p50 > 0.0);
    groups.sort_by(|a, b| a.p50.total_cmp(&b.p50));
    let starts = 0..groups.len();
    let agreed = starts.filter_map(|start| agreeing(&groups[start..])).next();
    let (at, width) = match agreed {
        Some((own, last)) => (own, (last - own.p50).max(own.p50 - groups[0].p50)),
        // Too few functions to tell real work from the cost: it may be anything below.
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

/// The first of these groups and the median of the last of the functions that agree with it.
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
