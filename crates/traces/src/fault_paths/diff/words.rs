//! Differences as sentences with numbers.

use super::figures::Wait;
use pagewise_model::fault_diff::{
    Explanation, Finding, Pair, Pairs, Part, PartCause, SlowCalls, Subject, Unit,
};
use pagewise_model::fault_paths::Class;
use pagewise_model::units::Nanos;

/// The data that a sentence needs in addition to its finding.
pub(super) struct Context<'a> {
    pub labels: [&'a str; 2],
    /// Mean whole time of the faults concerned.
    pub time: Pairs,
    pub slow: Option<SlowCalls>,
    /// The part of the change that could be the error of the correction, in its unit.
    pub error: f64,
}

/// The reason for waiting.
pub(super) fn wait(wait: Wait) -> &'static str {
    match wait {
        Wait::Runnable => "waiting for a CPU",
        Wait::Blocked => "asleep",
        Wait::Unknown => "off the CPU",
        Wait::LockBefore => "waiting for the lock before the fault",
    }
}

/// A finding as a sentence.
pub(super) fn finding(finding: &Finding, context: &Context<'_>) -> String {
    let [a, b] = context.labels;
    let Pairs { raw, corrected } = finding.figures;
    let of = kind(finding.class);
    let name = finding.name.as_deref().unwrap_or_default();
    let times = || {
        format!(
            "{} in {a}, {} in {b} ({}; as traced {} and {})",
            ns(corrected.a),
            ns(corrected.b),
            signed(corrected.b - corrected.a),
            ns(raw.a),
            ns(raw.b)
        )
    };
    let spends = |what: &str| spends(what, &corrected, context, finding.class);
    let sentence = match finding.subject {
        Subject::ClassShare => format!(
            "{} of {b}'s faults are of the kind \"{}\", {} of {a}'s",
            percent(corrected.b),
            finding.class.map_or("", Class::describe),
            percent(corrected.a)
        ),
        Subject::Mean => format!("A fault{of} takes {} on average", times()),
        Subject::Quantile => format!("The {} of faults{of} is {}", rank(name), times()),
        Subject::Rate => format!(
            "{b} has {} faults per second, {a} {}",
            number(corrected.b),
            number(corrected.a)
        ),
        Subject::SamePath => format!(
            "Compared with {a}'s faults of the same path, {b}'s take {} [{}, {}]",
            longer(corrected.b),
            signed_percent(finding.change.low),
            signed_percent(finding.change.high)
        ),
        Subject::SamePathTail => format!(
            "{} of {b}'s faults, {} of {a}'s, are slower than 99 % of both's faults of the same \
             path",
            percent(corrected.b),
            percent(corrected.a)
        ),
        Subject::Layer => spends(&format!(
            "in the layer \"{}\"",
            finding.layer.map_or("", |layer| layer.describe())
        )),
        Subject::Wait => spends(name),
        Subject::PathShare => format!(
            "{} of {b}'s faults{of} take this path, {} of {a}'s: {}",
            percent(corrected.b),
            percent(corrected.a),
            shortened(name)
        ),
        Subject::FunctionTime => format!("{name} itself takes {} per fault{of}", times()),
        Subject::FunctionCalls => format!(
            "{name} is called {} times per fault{of} in {a}, {} in {b}",
            number(corrected.a),
            number(corrected.b)
        ),
        Subject::FunctionSlowCalls => match context.slow {
            Some(slow) => slow_calls(name, &of, &slow, context.labels),
            None => format!("{name} has slow calls{of} in only one of the two"),
        },
    };
    let error = context.error;
    match finding.correction_exceeds_signal {
        true if error >= finding.change.value.abs() && error.is_finite() => {
            let error = match finding.unit {
                Unit::Ns => ns(error),
                Unit::PerSecond => format!("{} per second", number(error)),
                _ => percent(error),
            };
            format!("{sentence}. The tracer's cost is known only to within ± {error} of that.")
        }
        true if error > 0.0 && error.is_infinite() => {
            format!("{sentence}. The tracer's cost is not known precisely enough to tell.")
        }
        true => format!(
            "{sentence}. Careful: the correction for the tracer's cost differs by more than that."
        ),
        false => format!("{sentence}."),
    }
}

/// `12 % longer`, `2.3 times as long`, `30 % less time`: the ratio of two times in words.
pub(super) fn longer(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 1.995 => format!("{ratio:.1} times as long"),
        ratio if ratio >= 1.0 => format!("{} longer", percent(ratio - 1.0)),
        ratio => format!("{} less time", percent(1.0 - ratio)),
    }
}

fn signed_percent(share: f64) -> String {
    match share {
        share if share < 0.0 => format!("−{}", percent(-share)),
        share => format!("+{}", percent(share)),
    }
}

fn spends(what: &str, corrected: &Pair, context: &Context<'_>, class: Option<Class>) -> String {
    let [a, b] = context.labels;
    let time = context.time.corrected;
    let share = |part: f64, whole: f64| percent(if whole > 0.0 { part / whole } else { 0.0 });
    format!(
        "{b} spends {} of fault time{} {what} ({} per fault), {a} {} ({})",
        share(corrected.b, time.b),
        in_faults(class),
        ns(corrected.b),
        share(corrected.a, time.a),
        ns(corrected.a)
    )
}

fn slow_calls(name: &str, of: &str, slow: &SlowCalls, [a, b]: [&str; 2]) -> String {
    let more_in_b = slow.per_fault.b >= slow.per_fault.a;
    let (label, usual, took) = match more_in_b {
        true => (b, slow.usual_ns.b, slow.slow_ns.b),
        false => (a, slow.usual_ns.a, slow.slow_ns.a),
    };
    format!(
        "{name} itself takes {} or more in {} of faults{of} in {b}, {} in {a}: in {label} about {} \
         longer than its usual {} (as traced)",
        ns(whole(slow.above_ns)),
        percent(slow.per_fault.b),
        percent(slow.per_fault.a),
        ns(took - usual),
        ns(usual)
    )
}

/// An explanation as sentences: the difference, then its largest parts.
pub(super) fn explanation(found: &Explanation, what: &str, [a, b]: [&str; 2]) -> Vec<String> {
    let Pairs { raw, corrected } = found.figures;
    if corrected == Pair::default() {
        return Vec::new();
    }
    let mut sentences = vec![format!(
        "The {what} is {} in {a}, {} in {b}: {} (as traced {}, {}: {}).",
        ns(corrected.a),
        ns(corrected.b),
        signed(corrected.b - corrected.a),
        ns(raw.a),
        ns(raw.b),
        signed(raw.b - raw.a)
    )];
    let least = found.change_ns.abs().max(corrected.a * 0.01) * 0.05;
    let largest = found
        .parts
        .iter()
        .map(|part| part.ns.abs())
        .fold(0.0, f64::max);
    // If parts cancel out, shares of the rest mean nothing.
    let all = if found.change_ns.abs() * 2.0 >= largest {
        found.change_ns
    } else {
        0.0
    };
    let large = found
        .parts
        .iter()
        .filter(|part| part.ns.abs() >= least && part.cause != PartCause::Rest);
    sentences.extend(large.take(8).map(|part| self::part(part, all, b)));
    sentences
}

fn part(part: &Part, all: f64, b: &str) -> String {
    let more = if part.ns > 0.0 { "more" } else { "less" };
    let Pair { a: from, b: to } = part.figures;
    let kind = part.class.map_or("all", Class::describe);
    let each = || {
        format!(
            "{} to {} per fault of the kind \"{kind}\"",
            ns(from),
            ns(to)
        )
    };
    let why = match part.cause {
        PartCause::Mix => {
            let slower = (part.ns > 0.0) == (to > from);
            format!(
                "{b} has {} faults of the kind \"{kind}\" ({} against {}), which take {} than others",
                if to > from { "more" } else { "fewer" },
                percent(to),
                percent(from),
                if slower { "longer" } else { "less time" }
            )
        }
        PartCause::Function => {
            format!(
                "{}, from {}",
                part.function.as_deref().unwrap_or_default(),
                each()
            )
        }
        PartCause::Runnable => format!("{more} waiting for a CPU, from {}", each()),
        PartCause::Blocked => format!("{more} time asleep, from {}", each()),
        PartCause::OffCpu => format!("{more} time off the CPU, from {}", each()),
        PartCause::LockBefore => format!("{more} waiting for the lock before it, from {}", each()),
        PartCause::Rest => "all smaller parts".to_owned(),
    };
    let share = match part.ns / all {
        _ if all == 0.0 => String::new(),
        share if share >= 0.0 => format!(" ({} of the difference)", percent(share)),
        share => format!(" (−{} of the difference)", percent(-share)),
    };
    format!("{}{share}: {why}.", signed(part.ns))
}

/// ` of the kind "swap-in"`.
fn kind(class: Option<Class>) -> String {
    class.map_or(String::new(), |class| {
        format!(" of the kind \"{}\"", class.describe())
    })
}

fn in_faults(class: Option<Class>) -> String {
    class.map_or(String::new(), |class| {
        format!(" in faults of the kind \"{}\"", class.describe())
    })
}

fn rank(quantile: &str) -> &str {
    match quantile {
        "0.5" => "median",
        "0.9" => "90th percentile",
        "0.99" => "99th percentile",
        "0.999" => "99.9th percentile",
        other => other,
    }
}

/// An outline shortened to one line.
fn shortened(outline: &str) -> String {
    const MOST: usize = 160;
    if outline.chars().count() <= MOST {
        return outline.to_owned();
    }
    let mut short: String = outline.chars().take(MOST).collect();
    short.push('…');
    short
}

fn whole(ns: u64) -> f64 {
    super::super::figures::whole(ns)
}

pub(super) fn ns(value: f64) -> String {
    let size = Nanos::from_secs_f64(value.abs() / 1e9);
    if value < -0.5 {
        format!("−{size}")
    } else {
        size.to_string()
    }
}

fn signed(value: f64) -> String {
    if value >= 0.0 {
        format!("+{}", ns(value))
    } else {
        ns(value)
    }
}

/// `21 %`, `0.3 %`, `0.0 %`.
pub(super) fn percent(share: f64) -> String {
    let per_cent = share * 100.0;
    match per_cent.abs() {
        size if (0.005..0.095).contains(&size) => format!("{per_cent:.2} %"),
        size if size < 9.95 => format!("{per_cent:.1} %"),
        _ => format!("{per_cent:.0} %"),
    }
}

/// `0`, `1`, `2.35`, `17`.
pub(super) fn number(value: f64) -> String {
    match value {
        value if (value - value.round()).abs() < 0.005 || value >= 20.0 => format!("{value:.0}"),
        value if value < 0.1 => format!("{value:.3}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_tell_them_apart() {
        let all = [0.0, 0.03, 0.0996, 0.5, 2.0, 2.003, 2.35, 17.0, 19.97, 20.4].map(number);
        let words = [
            "0", "0.030", "0.100", "0.50", "2", "2", "2.35", "17", "19.97", "20",
        ];
        assert_eq!(all, words);
        let all = [0.0, 0.0003, 0.0031, 0.0995, 0.21, -0.21].map(percent);
        assert_eq!(all, ["0.0 %", "0.03 %", "0.3 %", "10 %", "21 %", "-21 %"]);
    }

    #[test]
    fn each_wait_has_its_name() {
        let all = [
            Wait::Runnable,
            Wait::Blocked,
            Wait::Unknown,
            Wait::LockBefore,
        ]
        .map(wait);
        let words = ["waiting for a CPU", "asleep", "off the CPU"];
        assert_eq!(all[..3], words);
        assert!(all[3].contains("lock"));
    }
}
