//! How sure a setting is for a kind of program: by what it gained in programs with the same symptoms that
//! were measured, which the rules hold as data.

use super::phrases;
use super::rules::{Known, Rule};
use pagewise_families::matches;
use pagewise_model::findings::Findings;
use pagewise_model::quantity::factor_digits;
use pagewise_model::units::Estimate;

/// What is known of a setting for a kind of program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sure {
    /// Nearly all such programs gained.
    Gains,
    /// Many did not.
    MayNot,
    /// Too few were measured, or some gained and some did not.
    Unknown,
}

/// Fewest programs from which a kind is judged.
const FEWEST: usize = 3;
/// A program gained from here on, and gained nothing below.
const GAINED: f64 = 1.1;
const NOTHING: f64 = 1.05;
/// The share of programs that gained from which a setting is sure, and of those that gained nothing from
/// which it is not.
const NEARLY_ALL: f64 = 0.8;
const MANY: f64 = 0.4;

pub(super) fn sureness(findings: &Findings, rule: &Rule, cause: &str) -> Sure {
    let gains = gains(findings, rule, cause);
    let share = |is_one: fn(f64) -> bool| {
        let those = gains.iter().filter(|gain| is_one(**gain));
        those.count() as f64 / gains.len().max(1) as f64
    };
    match gains.len() {
        few if few < FEWEST => Sure::Unknown,
        _ if share(|gain| gain >= GAINED) >= NEARLY_ALL => Sure::Gains,
        _ if share(|gain| gain < NOTHING) >= MANY => Sure::MayNot,
        _ => Sure::Unknown,
    }
}

/// A prediction together with what such programs gained, if nearly all did: the middle of both.
pub(super) fn with(findings: &Findings, rule: &Rule, cause: &str, by_model: Estimate) -> Estimate {
    let mut gains = gains(findings, rule, cause);
    gains.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (gains.first(), gains.last()) else {
        return by_model;
    };
    let usual = gains[gains.len() / 2];
    match sureness(findings, rule, cause) {
        Sure::Gains => {
            let value = (by_model.value * usual).sqrt();
            Estimate {
                value,
                low: least.min(value),
                high: most.max(by_model.high),
            }
        }
        Sure::MayNot | Sure::Unknown => by_model,
    }
}

/// `Of 6 such programs that were measured, 5 became at least a tenth faster (×0.97 to ×1.45).`
pub(super) fn sentence(findings: &Findings, rule: &Rule, cause: &str) -> Option<String> {
    let gains = gains(findings, rule, cause);
    let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
    let most = gains.iter().copied().fold(0.0, f64::max);
    let gained = gains.iter().filter(|gain| **gain >= GAINED).count();
    let [low, high] = [least, most].map(factor_digits);
    (gains.len() >= FEWEST).then(|| phrases::known(gains.len(), gained, low, high))
}

/// The gains of the nearest kind: programs of this name, if enough were measured, otherwise all.
fn gains(findings: &Findings, rule: &Rule, cause: &str) -> Vec<f64> {
    let most = findings
        .by_thread
        .iter()
        .max_by(|a, b| a.faults.total_cmp(&b.faults));
    let name = most.map_or("", |thread| &thread.comm);
    let is_of_cause = |one: &&Known| one.cause.is_none_or(|known| known.id() == cause);
    let of_cause = || rule.known.iter().filter(is_of_cause);
    let of_name = of_cause().filter(|one| matches(&one.programs, name));
    let of_name: Vec<f64> = of_name.flat_map(|one| one.gains.clone()).collect();
    match of_name.len() >= FEWEST {
        true => of_name,
        false => of_cause().flat_map(|one| one.gains.clone()).collect(),
    }
}
