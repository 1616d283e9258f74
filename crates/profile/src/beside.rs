//! Combines the samples and the faults of one recording: more evidence, under one verdict.

use super::anomalies::BURST;
use pagewise_model::answer::Document;
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::profile_findings::ProfileFindings;

/// Adds the results of a recording's samples to those of its faults. The verdict is that of the
/// faults, unless the samples explain more.
pub fn add_samples(findings: &mut Findings, samples: ProfileFindings) {
    let Document {
        verdict,
        mut diagnoses,
        losses,
        evidence,
        ..
    } = samples;
    findings.profile = Some(evidence);
    // A program's phases differ in the work that they do; on a machine, more than usual needs a reason.
    if !findings.collection.whole_machine {
        let bursts = diagnoses.iter_mut().filter(|one| one.id == BURST);
        bursts.for_each(|one| one.severity = one.severity.min(Severity::Note));
    }
    let others = match findings.is_mostly_samples() {
        true => {
            findings.verdict = verdict;
            std::mem::replace(&mut findings.diagnoses, diagnoses)
        }
        false => diagnoses,
    };
    for diagnosis in others {
        insert(&mut findings.diagnoses, diagnosis);
    }
    findings.losses.take_in(&losses);
}

/// Inserts a diagnosis by its severity, below the one that the verdict is about.
fn insert(diagnoses: &mut Vec<Diagnosis>, new: Diagnosis) {
    let lighter = |old: &Diagnosis| old.severity < new.severity;
    let below = diagnoses.iter().skip(1).position(lighter);
    let at = below.map_or(diagnoses.len(), |at| at + 1);
    diagnoses.insert(at, new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::findings::Run;
    use pagewise_model::loss::LossKind;
    use pagewise_model::profile_findings::ProfileSummary;
    use pagewise_model::units::Nanos;

    fn together(cpu: Nanos) -> Findings {
        let mut run = Run::default();
        run.cost.user = cpu;
        let mut findings = Document::new(run).with_verdict("faults");
        findings.losses.add(LossKind::RingOverrun, 3);
        findings.diagnoses = vec![
            Diagnosis::named("churn", Severity::Costly),
            Diagnosis::named("pages", Severity::Note),
        ];
        let summary = ProfileSummary {
            span: Nanos(1),
            events: Vec::new(),
            counters: Vec::new(),
            unknown: Vec::new(),
            own_cost: None,
        };
        let mut samples = Document::new(summary).with_verdict("samples");
        samples.losses.add(LossKind::RingOverrun, 3);
        samples.diagnoses = vec![Diagnosis::named("lock", Severity::Severe)];
        add_samples(&mut findings, samples);
        findings
    }

    #[test]
    fn one_verdict_stands_over_faults_and_samples() {
        let ids = |findings: &Findings| -> Vec<String> {
            let all = findings.diagnoses.iter();
            all.map(|diagnosis| diagnosis.id.clone()).collect()
        };
        let run = together(Nanos(1_000));
        assert_eq!(run.verdict, "faults");
        assert_eq!(ids(&run), ["churn", "lock", "pages"]);
        assert_eq!(run.losses.count(LossKind::RingOverrun), 3, "seen twice");
        let of_another_tool = together(Nanos(0));
        assert_eq!(of_another_tool.verdict, "samples");
        assert_eq!(ids(&of_another_tool), ["lock", "churn", "pages"]);
    }

    #[test]
    fn a_burst_is_costly_on_a_machine_only() {
        let severity = |whole_machine| {
            let mut findings = Document::new(Run::default());
            findings.collection.whole_machine = whole_machine;
            let mut samples = Document::new(ProfileSummary {
                span: Nanos(1),
                events: Vec::new(),
                counters: Vec::new(),
                unknown: Vec::new(),
                own_cost: None,
            });
            samples.diagnoses = vec![Diagnosis::named(BURST, Severity::Costly)];
            add_samples(&mut findings, samples);
            findings.diagnoses[0].severity
        };
        assert_eq!(severity(false), Severity::Note);
        assert_eq!(severity(true), Severity::Costly);
    }
}
