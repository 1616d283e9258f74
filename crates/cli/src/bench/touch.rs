//! One measurement of `pagewise bench faults`, in a process of its own: the time of first touches.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use std::sync::Barrier;
use std::time::Instant;

/// What to touch.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Args {
    /// Threads that touch at the same time.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Pages for each thread.
    #[arg(long, default_value_t = 4096)]
    pages: usize,
}

/// Quantiles of the time of one touch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Times {
    pub p50_ns: u64,
    pub p99_ns: u64,
}

/// Bytes between two touches: more than any page of an ordinary mapping on x86-64.
const STEP: usize = 4096;

pub fn run(args: Args) -> Result<ExitCode> {
    let mut memory = vec![0_u8; args.threads * args.pages * STEP];
    let barrier = Barrier::new(args.threads);
    let mut times: Vec<u64> = std::thread::scope(|scope| {
        let parts = memory.chunks_mut(args.pages * STEP);
        let threads: Vec<_> = parts
            .map(|part| {
                let barrier = &barrier;
                scope.spawn(move || touch(part, args.pages, barrier))
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_default())
            .collect()
    });
    times.sort_unstable();
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or(0);
    let found = Times {
        p50_ns: at(50),
        p99_ns: at(99),
    };
    println!("{}", serde_json::to_string(&found)?);
    Ok(ExitCode::SUCCESS)
}

/// Writes to each page once, in an order without streams, so that nothing is brought in ahead.
fn touch(part: &mut [u8], pages: usize, barrier: &Barrier) -> Vec<u64> {
    let mut times = vec![0; pages];
    barrier.wait();
    let mut page = 0;
    for time in &mut times {
        // A step that shares no factor with the number of pages visits all of them.
        page = (page + 1_000_003) % pages;
        let began = Instant::now();
        part[page * STEP] = 1;
        *time = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    }
    times
}
