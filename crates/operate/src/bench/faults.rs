//! The cost of one page fault when the kernel resolves it, when handler threads do, and when the
//! faulting thread does (SIGBUS).

use crate::explain::OwnLibrary;
use crate::paged_run::{Budgeted, budgeted};
use anyhow::{Context, Result, bail};
use pagewise_linux::process::{Launch, Output, interrupt};
use pagewise_model::advice::{Setting, Settings};
use pagewise_model::bench::{FaultRow, Times, Way};
use pagewise_model::run::Ending;

/// More than what is touched, so that nothing is evicted.
const MEMORY: u64 = 2 << 30;

/// All rows, measured in turn, so that changes of the machine meanwhile affect all alike.
///
/// # Errors
/// If a measurement fails, or we are interrupted.
pub fn measure(threads: &[u16], runs: u32, library: OwnLibrary) -> Result<Vec<FaultRow>> {
    let cells: Vec<(Way, u16)> = Way::ALL
        .into_iter()
        .flat_map(|way| threads.iter().map(move |&count| (way, count)))
        .collect();
    let mut found = vec![Vec::new(); cells.len()];
    for _ in 0..runs {
        for (times, &(way, count)) in found.iter_mut().zip(&cells) {
            times.push(ask(way, count, library)?);
            if interrupt::requested().is_some() {
                bail!("interrupted before all was measured");
            }
        }
    }
    let rows = cells.into_iter().zip(found);
    Ok(rows
        .map(|((way, threads), times)| FaultRow {
            way,
            threads,
            times: Times {
                p50_ns: median(times.iter().map(|one| one.p50_ns)),
                p99_ns: median(times.iter().map(|one| one.p99_ns)),
                in_order_ns: median(times.iter().map(|one| one.in_order_ns)),
            },
        })
        .collect())
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

/// One process that touches pages: `pagewise bench touch`.
fn ask(way: Way, threads: u16, library: OwnLibrary) -> Result<Times> {
    let own = std::env::current_exe().context("cannot find pagewise's own program file")?;
    let result = tempfile::NamedTempFile::new().context("cannot make a temporary file")?;
    let mut launch = Launch {
        program: own.into_os_string(),
        args: ["bench", "touch", "--threads", &threads.to_string()]
            .map(Into::into)
            .to_vec(),
        output: Output::Capture(result.path().to_owned()),
        ..Launch::default()
    };
    let delivery = match way {
        Way::Kernel => None,
        Way::Fd => Some("fd"),
        Way::Sigbus => Some("sigbus"),
    };
    launch.settings = match delivery {
        // A huge page would resolve 512 touches by one fault.
        None => Settings(vec![Setting::Thp {
            mode: "never".to_owned(),
        }]),
        Some(delivery) => budgeted(
            &Budgeted {
                memory: MEMORY,
                policy: "fifo",
                delivery,
            },
            library,
        )?,
    };
    let finished = launch.spawn()?.wait()?;
    let output = std::fs::read_to_string(result.path()).context("cannot read the result")?;
    if finished.ending != Ending::Exited(0) {
        bail!(
            "a measurement failed ({:?}): {}",
            finished.ending,
            output.trim()
        );
    }
    let line = output.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("a measurement said: {}", output.trim()))
}
