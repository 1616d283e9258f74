//! The cost to a program of running under another one, such as a recorder.

use crate::Listener;
use crate::experiment::{Candidate, Experiment, Live, Options, Outcome};
use anyhow::Result;
use pagewise_model::proof::Comparison;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// With fewer pairs there is no interval.
const LEAST_ROUNDS: usize = 6;

/// Results, each compared with the program alone.
#[derive(Clone, Debug)]
pub struct Overhead {
    /// Under the other program.
    pub under: Comparison,
    /// Alone once more: any apparent cost here is noise.
    pub again: Comparison,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Runs the command alone, `under` another program, and alone once more, in shuffled rounds for
/// `budget`.
///
/// # Errors
/// If the command cannot be run, or was interrupted before there were two rounds.
pub fn measure(
    command: &[OsString],
    under: Vec<OsString>,
    budget: Duration,
    progress: &Listener<'_>,
) -> Result<Overhead> {
    let again = Candidate {
        name: "alone again".to_owned(),
        ..Candidate::default()
    };
    let recorded = Candidate {
        name: "recorded".to_owned(),
        under,
        ..Candidate::default()
    };
    // The rounds below keep to the budget, except for the minimum that gives an interval.
    let options = Options {
        budget: Duration::MAX,
        ..Options::default()
    };
    let started = Instant::now();
    let runner = Live::new(command, &options);
    let mut experiment = Experiment::begin(&runner, &[again, recorded], &options, progress)?;
    let mut active = experiment.in_play();
    let stopping = options.stopping.among(active.len(), options.criteria.level);
    while active.len() == 2 && experiment.has_time(&active, started + budget, LEAST_ROUNDS) {
        progress(&experiment.status(&active, &options));
        if experiment.round(&active)? == Outcome::Stopped {
            break;
        }
        active = experiment.in_play();
        let enough = |&arm: &usize| stopping.enough(&experiment.compare(arm, &options.criteria));
        if active.iter().all(enough) {
            break;
        }
    }
    let [again, under] = [1, 2].map(|arm| experiment.compare(arm, &options.criteria));
    experiment.note_noise();
    let (_, notes) = experiment.into_parts();
    anyhow::ensure!(
        under.pairs >= 2,
        "too few runs to compare: {}",
        notes.join(" ")
    );
    Ok(Overhead {
        under,
        again,
        notes,
    })
}
