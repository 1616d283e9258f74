//! Runs stored for later, and how much of them can be compared now.

use super::culprit;
use super::runs::{Program, Runner};
use crate::Listener;
use anyhow::{Context, Result, bail};
use pagewise_compare::gate::{Comparable, Now, batch, comparable};
use pagewise_linux::host;
use pagewise_linux::proc::ContentionWatch;
use pagewise_model::answer::{Document, Head, Kind, Subject};
use pagewise_model::contention::Contention;
use pagewise_model::gate::{Baseline, GateHost, Metric};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// How busy the CPUs were.
fn degree(watch: &ContentionWatch) -> Option<f64> {
    watch.so_far().as_ref().and_then(Contention::degree)
}

/// Runs the command `count` times, and once more under observation. With the data to store, returns
/// the reason if it does not show where the program faults.
///
/// # Errors
/// If the command fails.
pub fn measure(
    command: &[OsString],
    runner: &Runner,
    count: u32,
    progress: &Listener<'_>,
) -> Result<(Document<Baseline>, Option<String>)> {
    progress("first run, not measured");
    let (program, typical) = runner.first(command)?;
    let batch = batch(typical);
    let busy = ContentionWatch::begin();
    let mut runs = Vec::new();
    for run in 1..=count {
        progress(&format!("run {run} of {count}"));
        runs.push(runner.measure(&program, batch)?);
    }
    let contended = degree(&busy);
    progress("one more run, observed");
    let (faults, missing) = culprit::faults_of(&program, runner, &runs);
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let baseline = Baseline {
        host: GateHost::from(&host::snapshot()),
        made_unix_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
        contended,
        batch,
        runs,
        faults,
    };
    let subject = Subject::of_command(program.words());
    Ok((Document::new(baseline).about(subject), missing))
}

/// Stored runs.
///
/// # Errors
/// If the file contains none, or has an unknown version.
pub fn read(file: &Path) -> Result<Document<Baseline>> {
    let name = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let message =
        || format!("{name} is not a baseline: create one with pagewise gate --save {name} -- CMD");
    let head = Head::parse(text.as_bytes()).with_context(message)?;
    if head.known() != Some(Kind::GateBaseline) {
        bail!("{}", message());
    }
    if let Some(why) = head.other_version() {
        bail!("{name} is a baseline, but {why}; make a new one with --save");
    }
    let baseline: Document<Baseline> = serde_json::from_str(&text).with_context(message)?;
    if baseline.evidence.runs.is_empty() {
        bail!("{name} contains no runs; make a new one with --save");
    }
    Ok(baseline)
}

/// This machine next to the one of a baseline.
pub(super) struct Setting<'a> {
    baseline: &'a Document<Baseline>,
    host: GateHost,
    busy: ContentionWatch,
}

impl<'a> Setting<'a> {
    /// Starts to measure how busy the CPUs are.
    pub(super) fn begin(baseline: &'a Document<Baseline>) -> Self {
        Self {
            baseline,
            host: GateHost::from(&host::snapshot()),
            busy: ContentionWatch::begin(),
        }
    }

    fn comparable(&self, new: &Program) -> Comparable {
        let now = Now {
            host: &self.host,
            command: &new.words(),
            contended: degree(&self.busy),
        };
        comparable(self.baseline, now)
    }

    /// Metrics that cannot be compared, with the reason.
    ///
    /// # Errors
    /// If none can be compared.
    pub(super) fn barred(&self, new: &Program) -> Result<BTreeMap<Metric, String>> {
        let found = self.comparable(new);
        if let Some(why) = found.refused {
            bail!("{why}");
        }
        let times = Metric::ALL.into_iter().filter(|metric| metric.is_time());
        let why = found.times;
        Ok(times
            .filter_map(|metric| Some((metric, why.clone()?)))
            .collect())
    }

    /// Reasons why figures may differ.
    pub(super) fn warnings(&self, new: &Program) -> Vec<String> {
        self.comparable(new).warnings
    }
}
