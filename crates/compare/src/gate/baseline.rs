//! Which figures of stored runs can be compared with those of runs made now.
//!
//! Stored and new runs were not interleaved, so any change of the machine since then looks like
//! growth. Faults and memory do not depend on that, as long as the page size and the huge-page
//! setting are the same; times do, and are judged only on the same idle machine.

use pagewise_model::answer::Document;
use pagewise_model::gate::{Baseline, GateHost};
use pagewise_model::secrets;

/// If CPUs are shared more than this, times are unreliable (0 to 1; see
/// [`pagewise_model::contention`]).
const MOST_SHARED: f64 = 0.25;

/// The current machine and command.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    /// This machine.
    pub host: &'a GateHost,
    /// The command.
    pub command: &'a [String],
    /// How much the CPUs are shared (0 to 1).
    pub contended: Option<f64>,
}

/// What can be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparable {
    /// Why nothing can be; then the rest is empty.
    pub refused: Option<String>,
    /// Why times cannot be.
    pub times: Option<String>,
    /// What may make faults and memory differ.
    pub warnings: Vec<String>,
}

/// Which parts of a baseline can be compared now.
#[must_use]
pub fn comparable(baseline: &Document<Baseline>, now: Now<'_>) -> Comparable {
    let (then, here) = (&baseline.evidence.host, now.host);
    if let Some(why) = refused(then, here) {
        return Comparable {
            refused: Some(why),
            ..Comparable::default()
        };
    }
    Comparable {
        refused: None,
        times: other_host(then, here)
            .or_else(|| shared(baseline.evidence.contended, now.contended)),
        warnings: warnings(baseline, now),
    }
}

fn refused(then: &GateHost, here: &GateHost) -> Option<String> {
    let message = |host: &GateHost| {
        [
            ("the architecture", host.architecture.clone()),
            ("the page size", format!("{} bytes", host.page_size)),
            (
                "the setting of transparent huge pages",
                host.huge_pages.clone().unwrap_or_else(|| "none".to_owned()),
            ),
        ]
    };
    let mut both = message(then).into_iter().zip(message(here));
    let ((what, then), (_, here)) = both.find(|(then, here)| then != here)?;
    Some(format!(
        "the baseline was made where {what} is {then}, here it is {here}: neither faults nor memory \
         can be compared; make a new baseline here with --save"
    ))
}

fn other_host(then: &GateHost, here: &GateHost) -> Option<String> {
    let differs = match () {
        () if then.hostname != here.hostname => "host",
        () if then.cpu != here.cpu || then.cpus != here.cpus => "processor",
        () if then.kernel != here.kernel => "kernel",
        () => return None,
    };
    Some(format!("the baseline is of another {differs}"))
}

fn shared(then: Option<f64>, now: Option<f64>) -> Option<String> {
    let too_much = |degree: Option<f64>| degree.is_none_or(|degree| degree > MOST_SHARED);
    let message =
        |degree: Option<f64>| degree.map(|d| format!(" ({:.0} % of the time)", 100.0 * d));
    let (when, degree) = match (too_much(then), too_much(now)) {
        (false, false) => return None,
        (true, _) => ("when the baseline was made", then),
        (false, true) => ("now", now),
    };
    Some(match message(degree) {
        Some(message) => format!("the CPUs were shared with others {when}{message}"),
        None => format!("how busy the CPUs were {when} is not known"),
    })
}

fn warnings(baseline: &Document<Baseline>, now: Now<'_>) -> Vec<String> {
    let (then, here) = (&baseline.evidence.host, now.host);
    let mut warnings = Vec::new();
    // One stored before secrets were masked holds them.
    if secrets::masked(&baseline.subject.command) != now.command {
        warnings.push(format!(
            "The baseline is of another command: {}.",
            secrets::masked(&baseline.subject.command).join(" ")
        ));
    }
    let mut differs = |what: &str, a: &str, b: &str| {
        if a != b {
            warnings.push(format!(
                "The baseline was made with another {what} ({a}, here {b}), which may change faults \
                 and memory a little."
            ));
        }
    };
    differs("kernel", &then.kernel, &here.kernel);
    let unknown = "unknown".to_owned();
    let library = |host: &GateHost| host.c_library.clone().unwrap_or_else(|| unknown.clone());
    differs("C library", &library(then), &library(here));
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::answer::Subject;

    fn host() -> GateHost {
        GateHost {
            hostname: "ci-1".to_owned(),
            kernel: "6.12.1".to_owned(),
            architecture: "x86_64".to_owned(),
            cpu: "A".to_owned(),
            cpus: 4,
            page_size: 4096,
            huge_pages: Some("madvise".to_owned()),
            c_library: Some("2.41".to_owned()),
        }
    }

    type Change = fn(&mut GateHost);

    fn against(change: Change, contended: Option<f64>) -> Comparable {
        let command = vec!["./app".to_owned()];
        let baseline = Baseline {
            host: host(),
            made_unix_ms: 0,
            contended: Some(0.0),
            batch: 1,
            runs: Vec::new(),
            faults: None,
        };
        let baseline = Document::new(baseline).about(Subject::of_command(command.clone()));
        let mut here = host();
        change(&mut here);
        let now = Now {
            host: &here,
            command: &command,
            contended,
        };
        comparable(&baseline, now)
    }

    #[test]
    fn the_same_idle_host_is_comparable_in_all() {
        assert_eq!(against(|_| {}, Some(0.1)), Comparable::default());
    }

    #[test]
    fn other_pages_are_refused_with_the_reason() {
        let changes: [(Change, &str); 3] = [
            (
                |host| host.architecture = "aarch64".to_owned(),
                "architecture",
            ),
            (|host| host.page_size = 16384, "16384 bytes"),
            (|host| host.huge_pages = Some("always".to_owned()), "always"),
        ];
        for (change, message) in changes {
            let why = against(change, Some(0.0)).refused.unwrap();
            assert!(why.contains(message) && why.contains("--save"), "{why}");
        }
    }

    #[test]
    fn another_host_or_a_busy_one_leaves_faults_and_memory() {
        let other = against(|host| host.hostname = "ci-2".to_owned(), Some(0.0));
        assert_eq!((other.refused, other.warnings), (None, Vec::new()));
        assert!(other.times.unwrap().contains("another host"));
        let busy = against(|_| {}, Some(0.8));
        assert!(busy.times.unwrap().contains("now (80 %"));
        assert!(
            against(|_| {}, None)
                .times
                .unwrap()
                .contains("is not known")
        );
    }

    #[test]
    fn another_kernel_is_a_warning() {
        let other = against(|host| host.kernel = "6.18.4".to_owned(), Some(0.0));
        assert!(
            other.warnings[0].contains("6.12.1, here 6.18.4"),
            "{other:?}"
        );
        assert!(other.times.unwrap().contains("kernel"));
    }
}
