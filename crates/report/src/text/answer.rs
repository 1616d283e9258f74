//! The first screen.

use super::page::{Ink, Page, shorten};
use super::wrap::columns;
use crate::settings_export::exports;
use crate::visible::{named, visible};
use pagewise_model::advice::{Advice, Risk};
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::proof::{Comparison, Proof, Verdict};
use pagewise_model::quantity::{
    byte_change, count, counted, factor_digits, percent, percent_interval, shown_factor,
};
use pagewise_model::run::{Ending, signal_name};

/// Most facts shown for one diagnosis; the HTML shows all.
const FACTS: usize = 4;

pub fn verdict(page: &mut Page, findings: &Findings) {
    let program = named(&findings.subject, findings.collection.whole_machine);
    let program = shorten(&program, page.width.saturating_sub(11));
    let line = page.paint(Ink::Faint, &program);
    let label = page.label("pagewise");
    page.line(&format!("{label}{line}"));
    page.gap();
    // If the verdict is about samples, so is the first diagnosis, if there is one.
    let first = findings.diagnoses.first();
    let first = first.filter(|one| one.is_of_samples() || !findings.is_mostly_samples());
    let gravity = first.map(|one| one.severity);
    let (word, ink) = severity(gravity);
    if !findings.verdict.is_empty() {
        page.marked(word, ink, &visible(&findings.verdict));
        page.gap();
    }
}

fn severity(gravity: Option<Severity>) -> (&'static str, Ink) {
    match gravity {
        Some(Severity::Severe) => ("● severe", Ink::Bad),
        Some(Severity::Costly) => ("● costly", Ink::Caution),
        Some(Severity::Note) => ("● note", Ink::Strong),
        Some(Severity::Healthy) => ("● healthy", Ink::Good),
        None => ("● result", Ink::Strong),
    }
}

pub fn cost(page: &mut Page, findings: &Findings) {
    let cost = &findings.cost;
    let times = format!(
        "{} elapsed · {} user · {} system",
        cost.wall, cost.user, cost.system
    );
    let mut faults = format!(
        "{} minor faults · {} major",
        count(cost.minor_faults),
        count(cost.major_faults)
    );
    // Not known for a whole machine.
    if cost.max_rss.0 > 0 {
        faults.push_str(&format!(" · {} peak memory", cost.max_rss));
    }
    page.paragraph("Cost", Ink::Plain, &times);
    page.paragraph("", Ink::Plain, &faults);
    if let Some(share) = &findings.time.share_of_cpu {
        let text = format!(
            "Page faults take {} of the CPU time",
            percent_interval(share)
        );
        let how = match findings.time.method.as_str() {
            "" => text,
            method => format!("{text} ({})", visible(method)),
        };
        page.paragraph("", Ink::Plain, &how);
    }
    match findings.ending {
        Ending::Exited(0) => {}
        Ending::Exited(status) => {
            page.paragraph("", Ink::Caution, &format!("It exited with status {status}"));
        }
        Ending::Killed(signal) => {
            page.paragraph(
                "",
                Ink::Caution,
                &format!("It was killed by {}", signal_name(signal)),
            );
        }
        Ending::Running => {
            page.paragraph("", Ink::Faint, "It was still running when observing ended")
        }
    }
    page.gap();
}

/// The reasons for the verdict and the other findings; those from samples where samples are shown.
pub fn why(page: &mut Page, findings: &Findings) {
    let found = findings.diagnoses.iter().filter(|one| !one.is_of_samples());
    for (index, diagnosis) in found.enumerate() {
        diagnosis_part(page, if index == 0 { "Why" } else { "Also" }, diagnosis);
    }
}

fn diagnosis_part(page: &mut Page, label: &str, diagnosis: &Diagnosis) {
    page.paragraph(label, Ink::Strong, &visible(&diagnosis.headline));
    if !diagnosis.explanation.is_empty() {
        page.paragraph("", Ink::Plain, &visible(&diagnosis.explanation));
    }
    // A side note must not push the answer off the screen; the HTML shows all facts.
    let facts = match diagnosis.severity {
        Severity::Note => 0,
        _ => FACTS,
    };
    for fact in diagnosis.evidence.iter().take(facts) {
        page.bullet("", &visible(fact));
    }
    let more = diagnosis.evidence.len().saturating_sub(facts);
    if more > 0 {
        let (facts, more) = if more == 1 {
            ("fact", more)
        } else {
            ("facts", more)
        };
        page.paragraph(
            "",
            Ink::Faint,
            &format!("… {more} more {facts} in the HTML report"),
        );
    }
    page.gap();
}

/// The best advice.
pub fn fix(page: &mut Page, findings: &Findings) {
    if let Some(best) = findings.advice.first() {
        advice_part(page, "Fix", best, findings);
    }
}

/// The other advice, below the proof.
pub fn alternatives(page: &mut Page, findings: &Findings) {
    for advice in findings.advice.iter().skip(1) {
        advice_part(page, "Or", advice, findings);
    }
}

fn advice_part(page: &mut Page, label: &str, advice: &Advice, findings: &Findings) {
    page.paragraph(label, Ink::Strong, &visible(&advice.headline));
    page.paragraph("", Ink::Plain, &visible(&advice.reason));
    if let Some(export) = exports(&findings.exported(&advice.settings)).first() {
        page.gap();
        page.verbatim("", &export.text);
        page.gap();
    }
    if let Some(manual) = &advice.manual {
        page.paragraph("", Ink::Plain, &visible(manual));
    }
    page.paragraph("", Ink::Plain, &promise(advice, findings));
    if let Some(caveat) = &advice.caveat {
        page.paragraph("", Ink::Plain, &format!("Note: {}", visible(caveat)));
    }
    page.gap();
}

/// The runs that proved advice.
fn proved<'a>(advice: &Advice, findings: &'a Findings) -> Option<&'a Comparison> {
    let proof = findings.proof.as_ref()?;
    let name = advice.name();
    let mut found = proof.confirmation.iter().chain(&proof.comparisons);
    found.find(|one| one.arm == name && one.verdict == Verdict::Faster)
}

/// A factor below this is no prediction of a gain, however wide its interval.
const A_GAIN: f64 = 1.01;

fn promise(advice: &Advice, findings: &Findings) -> String {
    let risk = match advice.risk {
        Risk::Low => "low risk",
        Risk::Medium => "medium risk: some workloads get slower",
        Risk::High => "high risk, for experts",
    };
    if let Some(found) = proved(advice, findings)
        && let Some(gain) = shown_factor(&found.cpu_speedup)
    {
        let memory = byte_change(found.rss_change_bytes);
        return format!("Proved {gain} in CPU time · memory {memory} · {risk}");
    }
    let price = match advice.rss_price.0 {
        0 => "no more memory".to_owned(),
        _ => format!("up to {} more memory", advice.rss_price),
    };
    let faults = match advice.faults_avoided {
        avoided if avoided > 0.0 => format!(" · {} of the faults gone", percent(avoided)),
        _ => String::new(),
    };
    let predicted = advice.predicted_speedup;
    let gain = match shown_factor(&predicted).filter(|_| predicted.value >= A_GAIN) {
        Some(factor) => format!("Predicted {factor} in CPU time"),
        None => "Gain: only runs can show it".to_owned(),
    };
    format!("{gain}{faults} · {price} · {risk}")
}

pub fn proof(page: &mut Page, findings: &Findings) {
    let Some(proof) = &findings.proof else {
        return;
    };
    page.paragraph("Proof", proof_ink(proof), &visible(&proof.summary));
    let names = proof.comparisons.iter().map(|c| columns(&visible(&c.arm)));
    let room = names.max().unwrap_or(0).min(32);
    for comparison in &proof.comparisons {
        page.bullet("", &measured(comparison, room));
    }
    for note in &proof.notes {
        page.paragraph("", Ink::Faint, &visible(note));
    }
    page.gap();
}

fn proof_ink(proof: &Proof) -> Ink {
    let verdict = |c: &Comparison| c.verdict;
    let chosen = proof.confirmation.as_ref().map(verdict);
    let chosen = chosen.or_else(|| {
        let wins = |c: &&Comparison| Some(&c.arm) == proof.winner.as_ref();
        proof.comparisons.iter().find(wins).map(verdict)
    });
    match chosen {
        Some(Verdict::Faster) => Ink::Good,
        Some(Verdict::Slower | Verdict::TooMuchMemory) => Ink::Caution,
        _ => Ink::Strong,
    }
}

fn measured(comparison: &Comparison, room: usize) -> String {
    if comparison.pairs == 0 {
        let arm = visible(&comparison.arm);
        return format!("{:room$}  not tried", shorten(&arm, room));
    }
    let verdict = match comparison.verdict {
        Verdict::Faster => "faster",
        Verdict::NoDifference => "no difference",
        Verdict::Slower => "slower",
        Verdict::TooMuchMemory => "faster, but too much memory",
        Verdict::Undecided => "undecided",
        Verdict::NotReached => "does not reach the program",
        Verdict::TriedOnce => "no more runs",
    };
    let message =
        |clock: &str, ratio| shown_factor(ratio).map(|message| format!("{clock} {message}"));
    let mut parts: Vec<String> = [
        message("elapsed", &comparison.wall_speedup),
        message("CPU", &comparison.cpu_speedup),
    ]
    .into_iter()
    .flatten()
    .collect();
    match comparison.pairs {
        _ if !parts.is_empty() => {}
        1 => parts.push(format!(
            "one run: elapsed ×{}, CPU ×{}",
            factor_digits(comparison.wall_speedup.value),
            factor_digits(comparison.cpu_speedup.value)
        )),
        pairs => parts.push(format!(
            "{} of runs, too few to tell",
            counted(u64::from(pairs), "pair")
        )),
    }
    parts.push(format!(
        "faults to {}",
        percent(comparison.fault_ratio.value)
    ));
    parts.push(format!(
        "memory {}",
        byte_change(comparison.rss_change_bytes)
    ));
    format!(
        "{:room$}  {} · {verdict}",
        shorten(&visible(&comparison.arm), room),
        parts.join(" · "),
    )
}

pub fn missing(page: &mut Page, findings: &Findings) {
    page.gap();
    let notes = [
        &findings.collection.notes,
        &findings.timeline.notes,
        &findings.notes,
    ];
    let notes = notes
        .into_iter()
        .flatten()
        .map(|note| visible(note).into_owned());
    let mut message: Vec<String> = Vec::new();
    for line in findings.losses.descriptions().chain(notes) {
        // Faults and samples of one recording have the same notes.
        if !message.contains(&line) {
            page.bullet(if message.is_empty() { "Missing" } else { "" }, &line);
            message.push(line);
        }
    }
}
