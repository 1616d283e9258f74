//! The answers that a user needs first: do faults take longer, where, and are there more of them?

use super::words::{longer, ns, number, percent};
use pagewise_model::fault_diff::{
    Answer, Explanation, FaultDiff, Finding, Pair, Part, PartCause, Question, Subject,
};
use pagewise_model::fault_paths::Class;
use pagewise_model::quantity::rounded;
use std::collections::BTreeMap;

/// Numbers of faults that differ by less count as equal.
const AS_MANY: f64 = 0.05;

/// Parts of a difference are named if they make up at least this fraction of it.
const WORTH_NAMING: f64 = 0.25;

/// A larger fraction means that other parts cancel out.
const ALL: f64 = 1.2;

/// The answers in a sentence.
pub(super) fn headline(diff: &FaultDiff) -> String {
    if diff.method.not_tested.is_some() {
        return format!("{}; {}. Not tested.", untested(diff), how_many(diff));
    }
    let (time, usual, explanation) = how_long(diff);
    let place = explanation.and_then(|found| whereabouts(diff, found));
    let named = place.as_ref().and_then(|(_, mix)| *mix);
    let mut parts = vec![match &place {
        Some((place, _)) => format!("{time}, {place}"),
        None => time,
    }];
    parts.extend(usual);
    parts.extend(kinds(diff, named));
    parts.push(how_many(diff));
    format!("{}.", parts.join("; "))
}

fn untested(diff: &FaultDiff) -> String {
    match quantile(diff, 0.5) {
        Some(median) => format!(
            "The median fault takes {} in A, {} in B",
            ns(median.a),
            ns(median.b)
        ),
        None => "One of the two has no faults".to_owned(),
    }
}

/// How long faults take, the median in addition, and the difference that explains it.
fn how_long(diff: &FaultDiff) -> (String, Option<String>, Option<&Explanation>) {
    let usual = match quantile(diff, 0.5) {
        Some(Pair { a, b }) => match [ns(a), ns(b)] {
            [a, b] if a == b => format!("the median is {a} in both"),
            [a, b] => format!("the median is {a} and {b}"),
        },
        None => "the median is not known".to_owned(),
    };
    if let Some((time, explanation)) = times(diff, &diff.findings, "take") {
        let is_of_median = finding(&diff.findings, Subject::Quantile, Some("0.5")).is_some();
        return (time, (!is_of_median).then_some(usual), Some(explanation));
    }
    if let Some((time, explanation)) = times(diff, &diff.phases, "took") {
        let time = format!("In a few phases of these recordings, {}", lower(&time));
        return (time, Some(usual), Some(explanation));
    }
    (as_long(diff, &usual), None, None)
}

/// The first answer in `found` that is about time, with the difference that explains it.
fn times<'a>(
    diff: &'a FaultDiff,
    found: &[Finding],
    take: &str,
) -> Option<(String, &'a Explanation)> {
    let pair = |pair: Pair| format!("{} → {}", ns(pair.a), ns(pair.b));
    let ratio = |pair: Pair| longer(pair.b / pair.a.max(1.0));
    let of = |subject, name: Option<&'static str>| {
        finding(found, subject, name).map(|found| found.figures.corrected)
    };
    if let Some(median) = of(Subject::Quantile, Some("0.5")) {
        let time = format!("Faults {take} {} (median {})", ratio(median), pair(median));
        return Some((time, &diff.mean));
    }
    if let Some(mean) = of(Subject::Mean, None) {
        let time = format!("Faults {take} {} on average ({})", ratio(mean), pair(mean));
        return Some((time, &diff.mean));
    }
    let tails = [("0.99", "99th percentile"), ("0.9", "90th percentile")];
    for (quantile, name) in tails {
        if let Some(tail) = of(Subject::Quantile, Some(quantile)) {
            let much = ratio(tail);
            let time = format!("The slow faults {take} {much} ({name} {})", pair(tail));
            return Some((time, &diff.tail));
        }
    }
    if let Some(same) = of(Subject::SamePath, None) {
        let time = format!("Faults of the same path {take} {}", longer(same.b));
        return Some((time, &diff.mean));
    }
    of(Subject::SamePathTail, None).map(|slow| {
        let [a, b] = [slow.a, slow.b].map(percent);
        let time = format!("{b} of B's faults are slow for their path, {a} of A's");
        (time, &diff.tail)
    })
}

/// A sentence with a lower-case beginning, for use within another.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// No change of duration was found: the change that would have been found, or why that is not
/// known.
fn as_long(diff: &FaultDiff, usual: &str) -> String {
    let untold = |question: &&Question| {
        question.answer == Answer::WithinCorrection && question.subject != Subject::SamePathTail
    };
    let is_untold = diff.questions.iter().any(|question| untold(&question));
    // A finding that answers none of the questions.
    let detail = diff
        .findings
        .iter()
        .find(|f| f.subject > Subject::SamePathTail);
    let detail = detail.map(|detail| detail.sentence.trim_end_matches('.'));
    match (is_untold, detail) {
        (true, detail) => {
            let but = detail.map_or(String::new(), |sentence| format!(", but {sentence}"));
            return format!(
                "Inconclusive whether faults take longer: the tracer's cost is not known precisely enough ({usual}){but}"
            );
        }
        (false, Some(sentence)) => {
            return format!(
                "Overall, no change in the duration of faults was found ({usual}), but {sentence}"
            );
        }
        (false, None) => {}
    }
    let same = |question: &&Question| question.subject == Subject::SamePath;
    let seen = diff.questions.iter().find(same).map(|question| {
        let half = (question.change.high - question.change.low) / 2.0;
        // Half a 95 % interval is 1.96 standard errors; a finding takes about 3.5, and another 1.3
        // to be found in nine of ten cases.
        half / 1.96 * 4.8
    });
    match seen {
        Some(seen) => format!(
            "No change in the duration of faults was found ({usual}); a change of {} within the same paths would have been",
            percent(seen.max(0.02))
        ),
        None => format!("No change in the duration of faults was found ({usual})"),
    }
}

/// Where most of a difference lies, among the parts beyond chance; with the kind if the reason is
/// more or fewer faults of that kind.
fn whereabouts(diff: &FaultDiff, found: &Explanation) -> Option<(String, Option<Class>)> {
    let all = found.change_ns;
    let mut causes: BTreeMap<_, (f64, &Part)> = BTreeMap::new();
    for part in found.parts.iter().filter(|part| is_sure(diff, part)) {
        // A function, or a wait, in any kind of fault.
        let class = part.class.filter(|_| part.cause == PartCause::Mix);
        let key = (part.cause, class, part.function.as_deref());
        causes.entry(key).or_insert((0.0, part)).0 += part.ns;
    }
    let share = |ns: f64| ns / all;
    let (ns, part) = causes
        .into_values()
        .filter(|(ns, _)| all != 0.0 && share(*ns) >= WORTH_NAMING)
        .max_by(|x, y| share(x.0).total_cmp(&share(y.0)))?;
    let much = match share(ns) {
        // A quantile changes by a different amount than the mean of the faults beyond it; and if
        // other parts cancel out, shares of the rest mean nothing.
        _ if std::ptr::eq(found, &diff.tail) => "mainly".to_owned(),
        share if share > ALL => "mainly".to_owned(),
        share if share > 0.9 => "nearly all of it".to_owned(),
        share if share >= 0.5 => format!("most of it ({})", percent(share)),
        share => format!("the largest part of it ({})", percent(share)),
    };
    Some((
        format!("{much} {}", cause(part)),
        part.class.filter(|_| part.cause == PartCause::Mix),
    ))
}

/// Whether a part of a difference is also a finding: parts include chance variation.
fn is_sure(diff: &FaultDiff, part: &Part) -> bool {
    let is_of = |finding: &Finding| match part.cause {
        PartCause::Rest => false,
        PartCause::Mix => finding.subject == Subject::ClassShare && finding.class == part.class,
        PartCause::Function => {
            finding.subject >= Subject::FunctionTime && finding.name == part.function
        }
        _ => finding.subject == Subject::Wait && finding.name.as_deref() == Some(&*cause(part)),
    };
    diff.findings.iter().chain(&diff.phases).any(is_of)
}

fn cause(part: &Part) -> String {
    match part.cause {
        PartCause::Function => format!("in {}", part.function.as_deref().unwrap_or_default()),
        PartCause::Mix => of_kind(part.class.map_or("", Class::describe), part.figures),
        PartCause::Runnable => "waiting for a CPU".to_owned(),
        PartCause::Blocked => "asleep".to_owned(),
        PartCause::OffCpu => "off the CPU".to_owned(),
        PartCause::LockBefore => "waiting for the lock before the fault".to_owned(),
        PartCause::Rest => "in all else".to_owned(),
    }
}

fn of_kind(kind: &str, share: Pair) -> String {
    let more = if share.b > share.a { "more" } else { "fewer" };
    format!(
        "because {more} of them are of the kind \"{kind}\" ({} → {})",
        percent(share.a),
        percent(share.b)
    )
}

/// The kinds of which there are more or fewer faults, except one that was already named.
fn kinds(diff: &FaultDiff, named: Option<Class>) -> Option<String> {
    let found = [&diff.findings, &diff.phases].map(|found| {
        let shares = found.iter().filter(|f| f.subject == Subject::ClassShare);
        shares.collect::<Vec<&Finding>>()
    });
    let shares = found.iter().find(|shares| !shares.is_empty())?.iter();
    if shares.clone().any(|f| f.class == named && named.is_some()) {
        return None;
    }
    let change = |finding: &&&Finding| finding.change.value.abs();
    let most = shares.max_by(|x, y| change(x).total_cmp(&change(y)))?;
    let Pair { a, b } = most.figures.corrected;
    Some(format!(
        "{} faults are of the kind \"{}\" ({} → {})",
        if b > a { "more" } else { "fewer" },
        most.class.map_or("", Class::describe),
        percent(a),
        percent(b)
    ))
}

fn how_many(diff: &FaultDiff) -> String {
    let (a, b) = (count(diff.a.faults), count(diff.b.faults));
    let found = [&diff.findings, &diff.phases];
    let rate = found.map(|found| finding(found, Subject::Rate, None));
    if let Some(rate) = rate.into_iter().flatten().next() {
        let Pair { a, b } = rate.figures.corrected;
        let ratio = b / a.max(f64::MIN_POSITIVE);
        let times = match ratio {
            ratio if ratio >= 1.995 => format!("{ratio:.1} times as many"),
            ratio if ratio >= 1.0 => format!("{} more", percent(ratio - 1.0)),
            ratio => format!("{} fewer", percent(1.0 - ratio)),
        };
        return format!("{times} per second ({} → {})", number(a), number(b));
    }
    if (a - b).abs() <= AS_MANY * a.max(b) {
        return format!("as many faults ({} and {})", rounded(a), rounded(b));
    }
    let same = diff
        .questions
        .iter()
        .find(|question| question.subject == Subject::Rate);
    match same.map(|question| question.figures.corrected) {
        Some(rate) => format!(
            "{} and {} faults, {} and {} per second",
            rounded(a),
            rounded(b),
            number(rate.a),
            number(rate.b)
        ),
        None => format!("{} and {} faults", rounded(a), rounded(b)),
    }
}

fn finding<'a>(found: &'a [Finding], subject: Subject, name: Option<&str>) -> Option<&'a Finding> {
    found.iter().find(|finding| {
        finding.subject == subject
            && finding.class.is_none()
            && (name.is_none() || finding.name.as_deref() == name)
    })
}

fn quantile(diff: &FaultDiff, quantile: f64) -> Option<Pair> {
    let mut all = diff.whole.quantiles.iter();
    let found = all.find(|shift| (shift.quantile - quantile).abs() < 1e-9)?;
    Some(found.ns.corrected)
}

fn count(faults: u64) -> f64 {
    super::super::figures::whole(faults)
}
