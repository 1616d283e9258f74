//! Two profiles, or two ranges of one.

use super::Args;
use crate::{profile_input, terminal};
use anyhow::{Result, bail};
use pagewise_compare::profile_diff::{DiffError, DiffOptions, SettingRules, diff};
use pagewise_compare::run_diff::with_runs;
use pagewise_model::answer::Document;
use pagewise_model::profile::{Profile, WeightUnit};
use pagewise_model::profile_diff::ProfileDiff;
use pagewise_model::run_diff::{FigureChange, Quantity, RunDiff};
use pagewise_model::units::Nanos;
use pagewise_report::html::render_profile_diff;
use std::process::ExitCode;
use std::str::FromStr;

/// A period of a profile, in seconds from its start: `4.2s..5.2s`, `4.2..`, `..5`; or `rest`,
/// everything except the other side's period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// From and to.
    Stretch(Nanos, Nanos),
    /// The time outside the other side's period.
    Rest,
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "rest" {
            return Ok(Self::Rest);
        }
        let wrong =
            || format!("{text} is neither a range of seconds, such as 4.2s..5.2s, nor rest");
        let (from, to) = text.split_once("..").ok_or_else(wrong)?;
        let seconds = |text: &str, open: f64| match text.trim_end_matches('s') {
            "" => Ok(open),
            text => text.parse::<f64>().map_err(|_| wrong()),
        };
        let (from, to) = (seconds(from, 0.0)?, seconds(to, f64::MAX)?);
        // Also refuses NaN.
        if !(from >= 0.0 && from < to) {
            return Err(wrong());
        }
        Ok(Self::Stretch(
            Nanos::from_secs_f64(from),
            Nanos::from_secs_f64(to),
        ))
    }
}

/// A change that ends a comparison with exit code 1: `+10% tcp_recvmsg`.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    percent: f64,
    function: String,
}

impl Limit {
    /// The figure of whole runs that it names in place of a function.
    fn quantity(&self) -> Option<Quantity> {
        match &*self.function {
            "page-faults" => Some(Quantity::Faults),
            "major-faults" => Some(Quantity::MajorFaults),
            "peak-memory" => Some(Quantity::PeakMemory),
            _ => None,
        }
    }

    /// Whether a figure changed by as much in its direction, and by more than two runs do.
    fn is_broken_by(&self, figure: &FigureChange) -> Option<String> {
        let percent = match figure.a {
            0.0 => f64::INFINITY,
            a => 100.0 * (figure.b - a) / a,
        };
        let beyond = match self.percent > 0.0 {
            true => percent >= self.percent,
            false => percent <= self.percent,
        };
        (figure.differs && beyond).then(|| {
            let by = match percent.is_finite() {
                true => format!("changed by {percent:+.1} %"),
                false => "is in B alone".to_owned(),
            };
            format!("{} {by}, beyond {:+} %", self.function, self.percent)
        })
    }

    /// Whether a profile has its function.
    fn is_about_any(&self, profile: &Profile) -> bool {
        profile
            .frames
            .iter()
            .any(|frame| *frame.name == *self.function)
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is not a limit such as \"+10% tcp_recvmsg\"");
        let (percent, function) = text
            .trim()
            .split_once(char::is_whitespace)
            .ok_or_else(wrong)?;
        let percent = percent.strip_suffix('%').ok_or_else(wrong)?;
        if !percent.starts_with(['+', '-']) {
            return Err(format!(
                "{text} has no sign: +{} for growth, -{} for shrinking",
                text.trim(),
                text.trim()
            ));
        }
        let percent: f64 = percent.parse().map_err(|_| wrong())?;
        let function = function.trim();
        if function.is_empty() || !percent.is_finite() || percent == 0.0 {
            return Err(wrong());
        }
        Ok(Self {
            percent,
            function: function.to_owned(),
        })
    }
}

/// Compares two profiles, prints the differences, and checks them against the limits.
///
/// # Errors
/// If they cannot be compared.
pub fn run(
    a: &Profile,
    b: &Profile,
    runs: Option<Document<RunDiff>>,
    args: &Args,
    labels: &(String, String),
) -> Result<ExitCode> {
    if !args.calibrate.is_empty() {
        bail!("--calibrate is for function_graph traces");
    }
    for limit in &args.fail_if {
        if limit.quantity().is_some() {
            if runs.is_none() {
                bail!(
                    "--fail-if: '{}' is of whole runs: record both with pagewise record -- CMD",
                    limit.function
                );
            }
            continue;
        }
        if !limit.is_about_any(a) && !limit.is_about_any(b) {
            bail!(
                "--fail-if: neither recording has a function '{}'; write its name as the report does, or \
                 page-faults, major-faults or peak-memory of whole runs",
                limit.function
            );
        }
    }
    let (a, b) = ranges(a, b, args)?;
    let options = DiffOptions {
        names: labels.clone(),
        event: args.event.clone(),
        shares: args.shares,
        seed: args.seed,
    };
    let found = diff(&a, &b, &options, &SettingRules::shipped()?);
    let found = found.map_err(|error| match error {
        DiffError::NoCommonEvent { .. } if is_folded(&a) != is_folded(&b) => {
            anyhow::Error::new(error).context(
                "folded stacks can only be compared with folded stacks: convert the other too (pagewise report FILE --export folded)",
            )
        }
        error => error.into(),
    })?;
    let found = match runs {
        Some(runs) => with_runs(found, runs),
        None => found,
    };
    terminal::present(
        &found,
        args.json,
        pagewise_report::text::profile_diff::render,
    )?;
    if let Some(path) = &args.output {
        crate::page::write(path, &render_profile_diff(&found, &a, &b)?)?;
    }
    let broken = broken(&found, &args.fail_if);
    for message in &broken {
        eprintln!("pagewise: {message}");
    }
    Ok(match broken.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Whether it was read from folded stacks.
fn is_folded(profile: &Profile) -> bool {
    profile
        .events
        .iter()
        .all(|event| event.unit == WeightUnit::Samples)
        && !profile.has_times
}

/// Cuts both to the periods to be compared.
fn ranges(a: &Profile, b: &Profile, args: &Args) -> Result<(Profile, Profile)> {
    let cut = |profile: &Profile, own: Option<Range>, other: Option<Range>| {
        if own.is_some() && !profile.has_times {
            bail!("ranges need times, which this input lacks");
        }
        Ok(match (own, other) {
            (None, _) => profile.clone(),
            (Some(Range::Stretch(from, to)), _) => profile_input::within(profile, from, to)?,
            (Some(Range::Rest), Some(Range::Stretch(from, to))) => profile.without(from, to),
            (Some(Range::Rest), _) => {
                bail!("rest means all but the other side's range: give one there")
            }
        })
    };
    Ok((
        cut(a, args.range_a, args.range_b)?,
        cut(b, args.range_b, args.range_a)?,
    ))
}

/// Limits that were exceeded, in words. A limit counts as exceeded if the change is at least that
/// large and more than chance: its 95 % interval excludes zero.
fn broken(found: &ProfileDiff, limits: &[Limit]) -> Vec<String> {
    let mut messages = Vec::new();
    for limit in limits {
        let mut figures = found.run.iter().flat_map(|run| &run.figures);
        let figure = figures.find(|figure| Some(figure.quantity) == limit.quantity());
        messages.extend(figure.and_then(|figure| limit.is_broken_by(figure)));
        let changes = found
            .functions
            .iter()
            .filter(|change| change.name == limit.function);
        for change in changes {
            let percent = match change.a {
                0.0 => f64::INFINITY.copysign(change.change.value),
                a => 100.0 * change.change.value / a,
            };
            let beyond = match limit.percent > 0.0 {
                true => percent >= limit.percent && change.change.low > 0.0,
                false => percent <= limit.percent && change.change.high < 0.0,
            };
            if beyond {
                let by = match percent.is_finite() {
                    true => format!("changed by {percent:+.1} %"),
                    false => "is in B alone".to_owned(),
                };
                messages.push(format!(
                    "{} {by}, beyond {:+} %",
                    limit.function, limit.percent
                ));
            }
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_seconds_and_rest() {
        let second = |value: u64| Nanos(value * 100_000_000);
        assert_eq!(
            "4.2s..5.2s".parse(),
            Ok(Range::Stretch(second(42), second(52)))
        );
        assert_eq!("rest".parse(), Ok(Range::Rest));
        assert!(matches!(
            "4..".parse(),
            Ok(Range::Stretch(Nanos(4_000_000_000), _))
        ));
        for wrong in ["5..4", "x..", "4", "-1..2", "NaN..3"] {
            assert!(wrong.parse::<Range>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_of_runs_hold_for_their_figures() {
        let figure = |a, b, differs| FigureChange {
            quantity: Quantity::Faults,
            a,
            b,
            differs,
        };
        let limit: Limit = "+10% page-faults".parse().unwrap();
        assert_eq!(limit.quantity(), Some(Quantity::Faults));
        let words = limit.is_broken_by(&figure(1_000.0, 1_200.0, true));
        assert_eq!(
            words.unwrap(),
            "page-faults changed by +20.0 %, beyond +10 %"
        );
        for within in [
            (1_000.0, 1_050.0, true),
            (1_000.0, 1_200.0, false),
            (1_000.0, 500.0, true),
        ] {
            assert_eq!(
                limit.is_broken_by(&figure(within.0, within.1, within.2)),
                None
            );
        }
        let fewer: Limit = "-50% peak-memory".parse().unwrap();
        assert!(fewer.is_broken_by(&figure(1_000.0, 400.0, true)).is_some());
    }

    #[test]
    fn limits_have_a_sign_and_a_function() {
        let limit: Limit = "+10% tcp_recvmsg".parse().unwrap();
        assert_eq!((limit.percent, &*limit.function), (10.0, "tcp_recvmsg"));
        assert_eq!("-5% f<a, b>".parse::<Limit>().unwrap().function, "f<a, b>");
        for wrong in ["tcp_recvmsg", "+10 tcp", "+x% f", "+0% f", "+10%"] {
            assert!(wrong.parse::<Limit>().is_err(), "{wrong}");
        }
        let unsigned = "10% f".parse::<Limit>().unwrap_err();
        assert_eq!(
            unsigned,
            "10% f has no sign: +10% f for growth, -10% f for shrinking"
        );
    }
}
