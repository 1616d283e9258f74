//! The answer in a sentence or two.

use pagewise_model::gate::{GateSide, GateVerdict, Judged};
use pagewise_model::quantity::{counted, relative_change};

/// What grew, or that nothing did, and how many runs showed it.
pub(super) fn headline(
    figures: &[Judged],
    old: &GateSide,
    new: &GateSide,
    planned: (usize, usize),
) -> String {
    let with = |verdict: GateVerdict| figures.iter().filter(move |f| f.verdict == verdict);
    let grown: Vec<String> = with(GateVerdict::Grown).map(growth).collect();
    if !grown.is_empty() {
        return sentence(&grown.join("; "));
    }
    let made = match old.baseline {
        Some(_) => new.runs.len(),
        None => old.runs.len() + new.runs.len(),
    };
    let early = old.runs.len() + new.runs.len() < planned.0 + planned.1;
    let shown = match (early, made) {
        (true, 1) => "1 run was enough to tell".to_owned(),
        (true, made) => format!("{made} runs were enough to tell"),
        (false, made) => format!("by {}", counted(made as u64, "run")),
    };
    let unsure: Vec<&str> = with(GateVerdict::Unsure)
        .map(|f| f.metric.label())
        .collect();
    match unsure.as_slice() {
        [] => format!("Nothing grew beyond what is allowed ({shown})."),
        some => sentence(&format!(
            "{} may have grown, but chance explains that ({shown})",
            some.join(" and ")
        )),
    }
}

/// `page faults grew from 10,000 to 10,500 (+5.0 %, 2 % allowed)`.
fn growth(figure: &Judged) -> String {
    let message =
        |value: Option<f64>| value.map_or_else(String::new, |value| figure.metric.amount(value));
    let by = match figure.growth {
        Some(growth) => format!("{}, ", relative_change(1.0 + growth)),
        None => String::new(),
    };
    format!(
        "{} grew from {} to {} ({by}{} allowed)",
        figure.metric.label(),
        message(figure.old),
        message(figure.new),
        figure.allowance(),
    )
}

/// Capitalised, with a full stop.
fn sentence(words: &str) -> String {
    let mut sentence = format!("{words}.");
    if let Some(first) = sentence.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    sentence
}
