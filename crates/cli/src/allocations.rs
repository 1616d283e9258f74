//! `pagewise memory --stacks`: options, the run, and exports of who holds the memory.

use crate::export::{self, ProfileExport};
use crate::{own_library, size};
use anyhow::{Context, Result};
use pagewise_linux::process::Launch;
use pagewise_model::answer::Document;
use pagewise_model::memory::{IN_USE, Memory};
use pagewise_model::units::Bytes;
use pagewise_operate::memory::{Ran, Rate, Sampling, Wanted, program};
use std::path::PathBuf;

/// How the program's allocations are sampled, if they are.
#[derive(clap::Args, Debug)]
pub struct Stacks {
    /// Sample the program's allocations, and show which call stacks hold what is live
    ///
    /// A library in front of malloc draws blocks at random, as many as bytes were allocated; shares have 95 % intervals.
    /// Children are sampled as well.
    #[arg(long, conflicts_with = "pid")]
    stacks: bool,
    /// Mean number of allocated bytes between two samples; fewer make shares of small sites more exact and cost more
    #[arg(long, value_name = "SIZE", default_value = "512K", requires = "stacks", value_parser = size::positive)]
    period: Bytes,
    /// Write the stacks for another tool: what is in use at the peak and at the end, and what was ever allocated
    #[arg(long, value_name = "FORMAT", requires = "stacks", value_parser = export::values())]
    export: Option<String>,
    /// Where to write it
    #[arg(short, long, value_name = "FILE", requires = "export")]
    output: Option<PathBuf>,
    /// The event of a format with room for one: inuse_space, inuse_objects, end_space, alloc_space, …
    #[arg(long, value_name = "EVENT", requires = "export")]
    event: Option<String>,
    /// Seed of the draws, for tests
    #[arg(long, hide = true, default_value_t = 0, requires = "stacks")]
    seed: u64,
}

impl Stacks {
    /// Runs the program, sampled if that was asked for, and looks at its memory.
    ///
    /// # Errors
    /// If it cannot be started, sampled or waited for.
    pub fn run(&self, launch: &Launch, wanted: Wanted) -> Result<Ran> {
        if !self.stacks {
            return program(launch, wanted);
        }
        let rate = Rate {
            period: self.period,
            seed: self.seed,
        };
        let sampling = Sampling::new(launch, rate, own_library::sampler)?;
        let mut ran = program(&sampling.applied(launch)?, wanted)?;
        sampling.add_to(&mut ran.document)?;
        Ok(ran)
    }

    /// Whether the export goes to standard output, in place of the account.
    pub fn is_to_standard_output(&self) -> bool {
        self.export.is_some() && self.output.is_none()
    }

    /// Writes the export, if one was asked for.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn export(&self, document: &Document<Memory>) -> Result<()> {
        let Some(format) = self.export.as_deref().and_then(export::named) else {
            return Ok(());
        };
        let holders = document.evidence.holders.as_ref();
        let profile = holders.context("nothing was sampled")?.profile();
        // pprof holds all; others show the first.
        let event = match self.event.as_deref() {
            None if format.name != "pprof" => Some(IN_USE),
            event => event,
        };
        let name = document.subject.command.first();
        format.export_profile(&ProfileExport {
            profile: &profile,
            before: None,
            event,
            name: name.map_or("", String::as_str),
            output: self.output.as_deref(),
        })
    }
}
