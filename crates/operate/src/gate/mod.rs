//! Whether a command takes more page faults, memory or time than the previous one, and why.

mod culprit;
mod runs;
mod stored;
mod together;

pub use runs::Runner;
pub use stored::{measure, read};

use crate::Listener;
use anyhow::{Context, Result, bail};
use pagewise_compare::gate::{Allowances, Terms, Turn, batch, judge, order};
use pagewise_model::answer::Document;
use pagewise_model::gate::{Gate, GateSide, Metric};
use pagewise_model::secrets;
use pagewise_stats::Random;
use runs::Program;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// What to compare, and how.
pub struct Request {
    /// The new command.
    pub command: Vec<OsString>,
    /// How both commands are run.
    pub runner: Runner,
    /// Maximum number of runs of each side.
    pub pairs: u32,
    /// Allowed growth.
    pub allowances: Allowances,
    /// Seed of the order of runs. The error rates hold for orders drawn at random.
    pub seed: u64,
}

/// The command against the old one, in random order.
///
/// # Errors
/// If one of them cannot be run, or fails.
pub fn against(
    old: &[OsString],
    request: &Request,
    progress: &Listener<'_>,
) -> Result<Document<Gate>> {
    let runner = &request.runner;
    let pairs = request.pairs as usize;
    let terms = request.terms(BTreeMap::new(), (pairs, pairs))?;
    progress("first runs, not measured");
    let (old, typical) = runner.first(old).context("the old command")?;
    let (new, of_new) = runner.first(&request.command).context("the new command")?;
    let batch = batch(typical.min(of_new));
    let (mut of_old, mut of_new) = (old.side(), new.side());
    for turn in order(pairs, &mut Random::seeded(request.seed)) {
        let runs = of_old.runs.len() + of_new.runs.len();
        progress(&format!("run {} of at most {}", runs + 1, 2 * pairs));
        let (program, side) = match turn {
            Turn::Old => (&old, &mut of_old),
            Turn::New => (&new, &mut of_new),
        };
        side.runs.push(runner.measure(program, batch)?);
        if !terms.is_open(&of_old.runs, &of_new.runs) {
            break;
        }
    }
    let mut found = judge(&terms, of_old, of_new);
    found.notes.extend(old.notes().chain(new.notes()));
    let gate = &mut found.evidence;
    (gate.batch, gate.seed) = (batch, request.seed);
    if !gate.passed {
        progress("one more run of each side, observed");
        gate.culprit = Some(culprit::of_two(gate, &old, &new, runner));
    }
    Ok(found)
}

/// The command against stored runs.
///
/// # Errors
/// If it cannot be run or fails, or nothing in the file can be compared.
pub fn against_stored(
    file: &Path,
    request: &Request,
    progress: &Listener<'_>,
) -> Result<Document<Gate>> {
    let runner = &request.runner;
    let baseline = read(file)?;
    let setting = stored::Setting::begin(&baseline);
    let stored = &baseline.evidence;
    progress("first run, not measured");
    let (new, _) = runner.first(&request.command)?;
    let mut of_new = new.side();
    let planned = (stored.runs.len(), request.pairs as usize);
    let terms = request.terms(setting.barred(&new)?, planned)?;
    while terms.is_open(&stored.runs, &of_new.runs) {
        let (run, most) = (of_new.runs.len() + 1, request.pairs);
        progress(&format!("run {run} of at most {most}"));
        of_new.runs.push(runner.measure(&new, stored.batch)?);
    }
    let terms = request.terms(setting.barred(&new)?, planned)?;
    let of_old = GateSide {
        command: secrets::masked(&baseline.subject.command),
        baseline: Some(file.display().to_string()),
        runs: stored.runs.clone(),
    };
    let mut found = judge(&terms, of_old, of_new);
    found.notes.extend(setting.warnings(&new));
    found.notes.extend(new.notes());
    let gate = &mut found.evidence;
    gate.batch = stored.batch;
    if !gate.passed {
        progress("one more run, observed");
        gate.culprit = Some(culprit::of_stored(gate, stored, &new, runner));
    }
    Ok(found)
}

impl Request {
    fn terms(&self, barred: BTreeMap<Metric, String>, planned: (usize, usize)) -> Result<Terms> {
        let terms = Terms {
            allowances: self.allowances.clone(),
            barred,
            planned,
        };
        match terms.too_few() {
            Some(why) => bail!("{why} (--pairs)"),
            None => Ok(terms),
        }
    }
}

impl Program {
    /// Its side, without runs.
    fn side(&self) -> GateSide {
        GateSide {
            command: self.words(),
            baseline: None,
            runs: Vec::new(),
        }
    }
}
