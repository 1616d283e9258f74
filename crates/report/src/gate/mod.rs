//! The answer of `pagewise gate` in the formats of pull requests and CI servers;
//! [`crate::text::gate`] is the text form.

mod junit;
mod markdown;

pub use junit::junit;
pub use markdown::markdown;

use crate::visible::visible;
use pagewise_model::gate::{FunctionGrowth, Gate, GateSide, GateVerdict, Judged, StackGrowth};
use pagewise_model::quantity::{relative_change, rounded};
use pagewise_model::run_diff::CauseChange;
use pagewise_model::units::Nanos;

/// A figure as table cells: name, old, new, change, limit, result.
pub(crate) fn cells(figure: &Judged) -> [String; 6] {
    let message = |value: Option<f64>| match value {
        Some(value) => figure.metric.amount(value),
        None => "–".to_owned(),
    };
    let change = match (figure.growth, figure.old, figure.new) {
        (Some(growth), ..) if growth.abs() < 0.0005 => "same".to_owned(),
        (Some(growth), ..) => relative_change(1.0 + growth),
        (None, Some(old), Some(new)) if old == new => "same".to_owned(),
        (None, Some(_), Some(_)) => "new".to_owned(),
        _ => "–".to_owned(),
    };
    let verdict = match figure.verdict {
        GateVerdict::Grown => "grew",
        GateVerdict::Within if figure.growth > figure.allowed => "small",
        GateVerdict::Within => "ok",
        GateVerdict::Unsure => "not sure",
        GateVerdict::NotJudged => "not judged",
    };
    let (old, new) = (message(figure.old), message(figure.new));
    [
        figure.metric.label().to_owned(),
        old,
        new,
        change,
        figure.allowance(),
        verdict.to_owned(),
    ]
}

/// A side as a user would type it, with the origin of its runs.
pub(crate) fn side(side: &GateSide) -> String {
    let command = crate::visible::command_line(&side.command);
    match &side.baseline {
        Some(file) => format!("{command} (runs stored in {})", visible(file)),
        None => command,
    }
}

/// How often both sides ran.
pub(crate) fn runs(gate: &Gate) -> String {
    let each = match gate.batch {
        1 => String::new(),
        batch => format!(", each the mean of {batch}"),
    };
    format!(
        "medians of {} old and {} new runs{each}",
        gate.old.runs.len(),
        gate.new.runs.len()
    )
}

/// A cause whose faults increased.
pub(crate) fn cause(cause: &CauseChange) -> String {
    let (old, new) = (rounded(cause.a.value), rounded(cause.b.value));
    format!("{}: {old} → {new} faults", cause.label)
}

/// A stack that grew, without its frames.
pub(crate) fn stack(stack: &StackGrowth) -> String {
    let (old, new) = (rounded(stack.old), rounded(stack.new));
    format!("{old} → {new} faults ({})", stack.label)
}

/// A function that takes more CPU time.
pub(crate) fn function(function: &FunctionGrowth) -> String {
    let [old, new] = [function.old_s, function.new_s].map(Nanos::from_secs_f64);
    format!("{old} → {new} of CPU time")
}
