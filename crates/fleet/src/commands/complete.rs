//! Answers from recordings whose files can all be read. Others would count as hosts that use nothing.

use crate::answer::Answer;
use crate::data::Run;
use crate::engine::Engine;
use anyhow::{Result, bail};
use std::collections::BTreeSet;

/// Tables that say what a host uses. Frames of a stack stand in the files of other hosts as well.
const TABLES: [&str; 4] = ["runs", "samples", "findings", "settings"];

/// Answers a question about these runs; if files turn out to be unusable, again without their runs.
pub fn answered(
    engine: &mut Engine,
    mut runs: Vec<Run>,
    answer: impl Fn(&mut Engine, &[Run]) -> Result<Answer>,
) -> Result<Answer> {
    let mut hosts: BTreeSet<String> = BTreeSet::new();
    loop {
        engine.forget_scans();
        let found = answer(engine, &runs)?;
        let incomplete = engine.incomplete(&TABLES);
        let unread = incomplete
            .iter()
            .filter_map(|&folder| engine.host_of(folder));
        hosts.extend(unread.map(str::to_owned));
        let before = runs.len();
        runs.retain(|run| {
            let is_whole = !incomplete.contains(&run.folder);
            if !is_whole {
                hosts.insert(run.host.clone());
            }
            is_whole
        });
        if runs.len() == before {
            return Ok(found.without(engine.unusable(), hosts.into_iter().collect()));
        }
        if runs.is_empty() {
            let bad = engine.unusable();
            let first = bad.first().map_or(String::new(), |file| {
                format!(": {}: {}", file.path, file.reason)
            });
            bail!("no recording has all of its files{first}");
        }
    }
}
