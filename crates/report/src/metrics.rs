//! A process tree's figures in the text formats that Prometheus reads: OpenMetrics 1.0, and the
//! older Prometheus format (0.0.4), which node_exporter's textfile collector takes.
//!
//! Deliberately absent: names of processes, commands and functions. Every label has a fixed, short
//! list of values, so that a thousand hosts make only some thousand times as many series.

use pagewise_model::findings::{Findings, Severity};
use pagewise_model::timeline::{PressurePoint, TimelinePoint};
use pagewise_model::units::{Bytes, Estimate, Nanos};
use std::fmt::Write as _;

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0: a counter's family name lacks its `_total`, and the text ends in `# EOF`.
    OpenMetrics,
    /// The Prometheus format, version 0.0.4.
    Prometheus,
}

impl Format {
    /// The media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The findings of one observation of the process.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The end of the observation, in seconds since 1970.
    pub at: f64,
    /// The findings.
    pub findings: Findings,
}

/// The newest figures.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Of the process tree.
    pub point: TimelinePoint,
    /// Of the machine and the cgroup.
    pub pressure: Option<PressurePoint>,
    /// Of an observation.
    pub observed: Option<Observed>,
}

/// All figures as text.
#[must_use]
pub fn text(figures: &Figures, format: Format) -> String {
    let mut page = Page {
        format,
        text: String::new(),
    };
    tree(&mut page, &figures.point);
    if let Some(pressure) = &figures.pressure {
        machine(&mut page, pressure);
    }
    if let Some(observed) = &figures.observed {
        inside(&mut page, observed);
    }
    if format == Format::OpenMetrics {
        page.text.push_str("# EOF\n");
    }
    page.text
}

fn tree(page: &mut Page, point: &TimelinePoint) {
    page.counter(
        "pagewise_page_faults",
        "Page faults of the process tree since watching started.",
        "kind",
        &[
            ("minor", count(point.minor_faults)),
            ("major", count(point.major_faults)),
        ],
    );
    page.counter(
        "pagewise_cpu_seconds",
        "CPU time of the process tree since watching started.",
        "mode",
        &[
            ("user", seconds(point.user)),
            ("system", seconds(point.system)),
        ],
    );
    let sizes = [
        ("virtual", Some(point.vsize)),
        ("resident", Some(point.rss)),
        ("proportional", point.pss),
        ("swapped", Some(point.swap)),
    ];
    page.gauge(
        "pagewise_memory_bytes",
        "Memory of the process tree; resident counts shared pages once per process, proportional once.",
        "kind",
        &known(&sizes),
    );
    page.gauge(
        "pagewise_tasks",
        "Live processes and threads of the tree.",
        "kind",
        &[
            ("process", f64::from(point.processes)),
            ("thread", f64::from(point.threads)),
        ],
    );
}

fn machine(page: &mut Page, pressure: &PressurePoint) {
    let stalls = [("some", pressure.stall_some), ("full", pressure.stall_full)];
    let stalls = stalls.into_iter();
    let stalls: Vec<(&str, f64)> = stalls
        .filter_map(|(kind, time)| Some((kind, seconds(time?))))
        .collect();
    page.counter(
        "pagewise_memory_stall_seconds",
        "Time that tasks on this machine stalled for memory (PSI) since watching started.",
        "kind",
        &stalls,
    );
    page.counter(
        "pagewise_machine_pages",
        "Pages that the machine's memory management moved since watching started.",
        "event",
        &[
            ("swapped_in", count(pressure.swap_in)),
            ("swapped_out", count(pressure.swap_out)),
            ("scanned_directly", count(pressure.direct_scanned)),
            ("scanned_by_kswapd", count(pressure.kswapd_scanned)),
            ("file_refault", count(pressure.refaults_file)),
            ("anonymous_refault", count(pressure.refaults_anon)),
        ],
    );
    page.counter(
        "pagewise_machine_huge_pages",
        "Huge pages on this machine since watching started: allocated at a fault, requested but unavailable, built by khugepaged, split.",
        "event",
        &[
            ("given", count(pressure.thp_fault_alloc)),
            ("not_to_be_had", count(pressure.thp_fault_fallback)),
            ("collapsed", count(pressure.thp_collapse)),
            ("split", count(pressure.thp_split)),
        ],
    );
    page.gauge(
        "pagewise_cgroup_memory_bytes",
        "Memory of the process's cgroup.",
        "kind",
        &known(&[("used", pressure.cgroup_usage)]),
    );
    let hits = pressure.cgroup_limit_hits;
    let hits: Vec<(&str, f64)> = hits.map(|hits| ("hit", count(hits))).into_iter().collect();
    page.counter(
        "pagewise_cgroup_limit_hits",
        "Times that the process's cgroup hit its memory limit since watching started.",
        "event",
        &hits,
    );
}

fn inside(page: &mut Page, observed: &Observed) {
    let findings = &observed.findings;
    page.gauge(
        "pagewise_observed_timestamp_seconds",
        "When the figures below were observed, for a short period and not since watching started.",
        "",
        &[("", observed.at)],
    );
    page.estimate(
        "pagewise_fault_cpu_ratio",
        "Share of the CPU time that page faults took, with its 95 % interval.",
        findings.time.share_of_cpu.as_ref(),
    );
    page.estimate(
        "pagewise_refault_ratio",
        "Faults on memory that the process had before and returned, as a share of the faults on private memory.",
        findings.churn.refault_ratio.as_ref(),
    );
    let all: f64 = findings.by_cause.iter().map(|line| line.faults.value).sum();
    let shares = findings.by_cause.iter().filter(|_| all > 0.0);
    let shares: Vec<(String, f64)> = shares
        .map(|line| (word(&line.key), line.faults.value / all))
        .collect();
    page.gauge_of_words(
        "pagewise_fault_cause_ratio",
        "Share of the page faults, by cause.",
        "cause",
        &shares,
    );
    for (name, help, parts, all) in [
        (
            "pagewise_cpu_ratio",
            "Share of the CPU time, by what used it.",
            &findings.account.cpu,
            findings.cost.cpu(),
        ),
        (
            "pagewise_elapsed_ratio",
            "Share of the elapsed time, by what the process did or waited for.",
            &findings.account.elapsed,
            findings.cost.wall,
        ),
    ] {
        let all = all.as_secs_f64() * 1e9;
        let shares = parts.iter().filter(|_| all > 0.0);
        let shares: Vec<(String, f64)> = shares
            .map(|part| (part.id.clone(), part.time.value / all))
            .collect();
        page.gauge_of_words(name, help, "part", &shares);
    }
    let grave = findings.diagnoses.iter();
    let grave: Vec<(String, f64)> = grave
        .map(|one| (one.id.clone(), f64::from(grade(one.severity))))
        .collect();
    page.gauge_of_words(
        "pagewise_finding_severity",
        "What was found: 0 healthy, 1 worth a note, 2 costly, 3 severe.",
        "finding",
        &grave,
    );
}

fn grade(severity: Severity) -> u8 {
    match severity {
        Severity::Healthy => 0,
        Severity::Note => 1,
        Severity::Costly => 2,
        Severity::Severe => 3,
    }
}

/// The name of a cause in the JSON.
fn word(cause: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(cause).ok();
    let word = value.as_ref().and_then(|value| value.as_str());
    word.unwrap_or("unknown").to_owned()
}

fn count(count: u64) -> f64 {
    count as f64
}

fn seconds(time: Nanos) -> f64 {
    time.as_secs_f64()
}

fn known<'a>(sizes: &[(&'a str, Option<Bytes>)]) -> Vec<(&'a str, f64)> {
    let sizes = sizes.iter();
    sizes
        .filter_map(|(kind, size)| Some((*kind, count((*size)?.0))))
        .collect()
}

/// A text under construction.
struct Page {
    format: Format,
    text: String,
}

impl Page {
    fn counter(&mut self, name: &str, help: &str, label: &str, values: &[(&str, f64)]) {
        let with_end = format!("{name}_total");
        let family = match self.format {
            Format::OpenMetrics => name,
            Format::Prometheus => &with_end,
        };
        self.family(
            family,
            "counter",
            help,
            &with_end,
            label,
            values.iter().copied(),
        );
    }

    fn gauge(&mut self, name: &str, help: &str, label: &str, values: &[(&str, f64)]) {
        self.family(name, "gauge", help, name, label, values.iter().copied());
    }

    fn gauge_of_words(&mut self, name: &str, help: &str, label: &str, values: &[(String, f64)]) {
        let values = values.iter().map(|(word, value)| (word.as_str(), *value));
        self.family(name, "gauge", help, name, label, values);
    }

    fn estimate(&mut self, name: &str, help: &str, estimate: Option<&Estimate>) {
        let values =
            estimate.map(|one| [("value", one.value), ("low", one.low), ("high", one.high)]);
        let values: Vec<(&str, f64)> = values.into_iter().flatten().collect();
        self.gauge(name, help, "bound", &values);
    }

    /// One metric family; omitted if it has no value: an unknown figure is absent.
    fn family<'a>(
        &mut self,
        family: &str,
        kind: &str,
        help: &str,
        sample: &str,
        label: &str,
        values: impl Iterator<Item = (&'a str, f64)>,
    ) {
        let mut values = values.filter(|(_, value)| value.is_finite()).peekable();
        if values.peek().is_none() {
            return;
        }
        // Writing to a string never fails.
        let _ = writeln!(self.text, "# HELP {family} {}", escaped(help));
        let _ = writeln!(self.text, "# TYPE {family} {kind}");
        for (of, value) in values {
            let _ = match label {
                "" => writeln!(self.text, "{sample} {value}"),
                label => writeln!(self.text, "{sample}{{{label}=\"{}\"}} {value}", escaped(of)),
            };
        }
    }
}

/// Escapes the characters that both formats require.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Figures {
        Figures {
            point: TimelinePoint {
                minor_faults: 12_345,
                major_faults: 6,
                user: Nanos(1_500_000_000),
                rss: Bytes(4096),
                processes: 2,
                threads: 7,
                ..TimelinePoint::default()
            },
            pressure: Some(PressurePoint {
                cgroup_usage: Some(Bytes(1 << 20)),
                ..PressurePoint::default()
            }),
            observed: None,
        }
    }

    #[test]
    fn counters_have_their_names_in_both_formats() {
        let open = text(&figures(), Format::OpenMetrics);
        assert!(open.contains("# TYPE pagewise_page_faults counter\n"));
        assert!(open.contains("pagewise_page_faults_total{kind=\"minor\"} 12345\n"));
        assert!(open.ends_with("# EOF\n"));
        let own = text(&figures(), Format::Prometheus);
        assert!(own.contains("# TYPE pagewise_page_faults_total counter\n"));
        assert!(own.contains("pagewise_page_faults_total{kind=\"major\"} 6\n"));
        assert!(own.contains("pagewise_cpu_seconds_total{mode=\"user\"} 1.5\n"));
        assert!(!own.contains("EOF"));
    }

    #[test]
    fn what_is_not_known_is_absent() {
        let known = text(&figures(), Format::Prometheus);
        for absent in [
            "=\"proportional",
            "stall",
            "limit_hits",
            "refault_ratio",
            "observed",
        ] {
            assert!(!known.contains(absent), "{absent}: {known}");
        }
        assert!(known.contains("pagewise_cgroup_memory_bytes{kind=\"used\"} 1048576\n"));
    }

    #[test]
    fn each_family_is_told_once_with_help_and_type() {
        let known = text(&figures(), Format::Prometheus);
        let named = |mark: &str| -> Vec<&str> {
            let lines = known.lines().filter_map(|line| line.strip_prefix(mark));
            lines.filter_map(|line| line.split(' ').next()).collect()
        };
        let (helps, types) = (named("# HELP "), named("# TYPE "));
        assert_eq!(helps, types);
        let mut once = helps.clone();
        once.dedup();
        assert!(helps.len() >= 7 && once == helps, "{helps:?}");
        for line in known.lines().filter(|line| !line.starts_with('#')) {
            let family = line.split(['{', ' ']).next().unwrap();
            assert!(helps.contains(&family), "{line}");
        }
    }
}
