//! What only one of two recordings has, and so is not compared.

use super::Run;

/// Whether it was recorded how memory is released: causes of faults follow from that.
fn has_calls(run: Run<'_>) -> bool {
    !run.findings.collection.call_windows.is_empty()
}

/// Why causes of faults are not compared, if they are not.
pub(super) fn not_compared(a: Run<'_>, b: Run<'_>) -> Option<String> {
    let without = match (has_calls(a), has_calls(b)) {
        (true, false) => b.name,
        (false, true) => a.name,
        _ => return None,
    };
    Some(format!(
        "Causes of page faults are not compared: {without} has no memory calls, from which they follow."
    ))
}

#[cfg(test)]
mod tests {
    use super::super::{SettingRules, compare};
    use super::*;
    use pagewise_model::answer::{Document, Subject};
    use pagewise_model::findings::{Cause, Findings, Run as Found, Share};
    use pagewise_model::run::Ending;
    use pagewise_model::units::{Estimate, Nanos};

    fn findings(cause: Cause, has_calls: bool) -> Findings {
        let mut found =
            Document::new(Found::default()).about(Subject::of_command(vec!["x".into()]));
        found.ending = Ending::Exited(0);
        found.cost.minor_faults = 540_000;
        found.by_cause = vec![Share {
            key: cause,
            faults: Estimate::exact(540_000.0),
            time: None,
        }];
        if has_calls {
            found.collection.call_windows = vec![(Nanos(0), Nanos(1))];
        }
        found
    }

    #[test]
    fn causes_that_one_side_did_not_record_are_not_compared() {
        let (whole, part) = (
            findings(Cause::RefaultAfterBrk, true),
            findings(Cause::Unknown, false),
        );
        let side = |findings, name| Run {
            findings,
            name,
            contended: 0.0,
        };
        let rules = SettingRules::shipped().unwrap();
        let compared = |a, b| compare(side(a, "a"), side(b, "b"), &rules).unwrap();
        let found = compared(&whole, &part);
        assert_eq!(found.causes, []);
        assert!(
            found.notes[0].contains("b has no memory calls"),
            "{:?}",
            found.notes
        );
        let same = compared(&whole, &whole);
        assert_eq!((same.causes.len(), same.notes.len()), (1, 0));
    }
}
