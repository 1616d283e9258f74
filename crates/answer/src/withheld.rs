//! What cannot be judged from a recording that lacks CPU times, addresses or its end.

use crate::plan::Symptom;
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::quantity;

/// Without CPU times nothing can be called healthy or costly: reports that instead, with advice.
pub(crate) fn withhold_judgement(findings: &mut Findings, without_address: f64) {
    let churn: f64 = findings
        .by_cause
        .iter()
        .filter(|share| share.key.is_churn())
        .map(|share| share.faults.value)
        .sum();
    let all: f64 = findings
        .by_cause
        .iter()
        .map(|share| share.faults.value)
        .sum();
    findings.verdict =
        "What page faults cost here is not known: this file has no CPU times.".to_owned();
    findings
        .diagnoses
        .retain(|d| d.severity != Severity::Healthy && d.id != Symptom::Short.id());
    if without_address > 0.5 {
        findings
            .diagnoses
            .insert(0, addresses_missing(without_address));
        return;
    }
    let unknown = Diagnosis {
        headline: "The causes of faults are shown; their share of the time is not known".to_owned(),
        explanation: "perf records events, not what the program used. Run the program under pagewise doctor to find out whether a fix pays off."
            .to_owned(),
        evidence: vec![format!(
            "{} of {} page faults touched memory again that had been returned",
            quantity::percent(churn / all.max(1.0)),
            quantity::rounded(all)
        )],
        ..Diagnosis::named("cost_unknown", Severity::Note)
    };
    findings.diagnoses.insert(0, unknown);
}

/// Fewer samples than this say nothing about a recording of which an unknown part is missing: a
/// share may be off by 10 percentage points (binomial, 95 %).
const FEWEST_WITHOUT_END: u64 = 100;

/// Says first that the end is missing, and judges nothing by a few samples.
pub(crate) fn withhold_without_end(findings: &mut Findings, cut: &str, samples: u64) {
    if samples < FEWEST_WITHOUT_END {
        findings.diagnoses.clear();
        findings.advice.clear();
        findings.verdict = format!(
            "{cut} What is left has {}: too few to judge by.",
            quantity::counted(samples, "page fault")
        );
        return;
    }
    findings.verdict = format!("{cut} {}", findings.verdict);
}

/// What to record so that causes can be found.
fn addresses_missing(share: f64) -> Diagnosis {
    Diagnosis {
        headline: "The causes of faults cannot be found: the file has no fault addresses".to_owned(),
        explanation: "Whether a fault touched new memory, memory that had been returned, or a file follows from its address. perf records addresses only with -d: perf record -d -g -e page-faults. Or run the program under pagewise doctor."
            .to_owned(),
        evidence: vec![format!(
            "{} of the page faults have no address",
            quantity::percent(share)
        )],
        ..Diagnosis::named("addresses_missing", Severity::Note)
    }
}
