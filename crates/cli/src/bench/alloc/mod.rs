//! `pagewise bench alloc`: the experiment of "A Study in Malloc" (Ezolt, 2001) on any allocator:
//! take a block, touch it, give it back; from which size on does the kernel see each of them?

mod plan;
mod threshold;

use super::cycle::ask;
use crate::progress::Progress;
use crate::terminal;
use anyhow::{Result, anyhow, bail};
use pagewise_analyse::compare::Random;
use pagewise_analyse::tune::parse_size;
use pagewise_linux::heap::{Shape, page_size};
use pagewise_linux::process::interrupt;
use pagewise_model::bench::{
    ALLOCATOR_BENCH_VERSION, AllocatorBench, AllocatorRow, Contender, Cost, Measured,
};
use pagewise_model::document::Kind;
use pagewise_model::units::Bytes;
use pagewise_report::{json, text};
use plan::contenders;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  pagewise bench alloc                          this machine's allocators
  pagewise bench alloc --size 126K --size 128K  two sizes only
  pagewise bench alloc --preload ./libmine.so   an allocator of your own
  sudo pagewise bench alloc                     with system calls counted";

/// Sizes of single blocks.
const SIZES: [&str; 12] = [
    "4K", "16K", "64K", "126K", "127K", "128K", "256K", "1M", "4M", "16M", "32M", "64M",
];
/// Totals of blocks that are taken one by one and given back together.
const TOTALS: [&str; 5] = ["256K", "1M", "4M", "16M", "64M"];
/// Size of each of these blocks: below every allocator's mmap threshold.
const SMALL_BLOCK: usize = 16 << 10;

#[derive(clap::Args)]
pub struct Args {
    /// Size of a block, such as 126K (may be given several times)
    ///
    /// Without it: 4K to 64M, and many small blocks given back together.
    #[arg(long = "size", value_name = "SIZE", value_parser = block_size)]
    sizes: Vec<usize>,
    /// Another allocator's library to measure (may be given several times)
    #[arg(long = "preload", value_name = "LIBRARY")]
    libraries: Vec<PathBuf>,
    /// Only allocators whose name contains this text (may be given several times)
    #[arg(long = "only", value_name = "TEXT")]
    only: Vec<String>,
    /// Fresh processes for each figure; the median is shown
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,
    /// Time for each process, such as 20ms
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = crate::duration::parse)]
    time: Duration,
    /// Print the result as JSON (schema: pagewise help schema.json)
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    let document = measure_all(args)?;
    let mut out = terminal::output(args.json);
    let text = match args.json {
        true => json::to_string(&document)?,
        false => text::bench_alloc::render(&document, terminal::width()),
    };
    out.write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn measure_all(args: &Args) -> Result<AllocatorBench> {
    let progress = Progress::new();
    let (mut contenders, mut notes) = contenders(&args.libraries)?;
    let chosen = |name: &str| {
        args.only.is_empty() || args.only.iter().any(|text| name.contains(text.as_str()))
    };
    let known: Vec<String> = contenders.iter().map(|one| one.name.clone()).collect();
    contenders.retain(|contender| chosen(&contender.name));
    if contenders.is_empty() {
        bail!(
            "no allocator matches --only; there are: {}",
            known.join("; ")
        );
    }
    let shapes = args.shapes()?;
    let mut table = measure_table(&contenders, &shapes, args, &progress)?;
    let mut allocators = Vec::new();
    for (contender, costs) in contenders.into_iter().zip(table.drain(..)) {
        progress.show(&format!("{}: looking for its threshold", contender.name));
        let threshold = threshold::find(&contender.settings, args.time)?;
        let row = |(shape, cost): (&Shape, Cost)| AllocatorRow {
            bytes: bytes(shape.size * shape.blocks),
            block_bytes: bytes(shape.size),
            cost,
        };
        let rows = shapes.iter().zip(costs).map(row);
        let (single, together) = rows.partition(|row: &AllocatorRow| row.bytes == row.block_bytes);
        allocators.push(Measured {
            contender,
            threshold_bytes: threshold,
            single,
            together,
        });
    }
    progress.finish();
    if allocators
        .iter()
        .flat_map(|one| &one.single)
        .any(|row| row.cost.calls.is_none())
    {
        notes.push(
            "System calls were not counted: that needs root (or CAP_PERFMON) and tracefs. Try \
             sudo pagewise bench alloc."
                .to_owned(),
        );
    }
    Ok(AllocatorBench {
        kind: Kind::AllocatorBench,
        schema_version: ALLOCATOR_BENCH_VERSION,
        page_bytes: bytes(page_size()),
        glibc: pagewise_linux::heap::glibc_version(),
        allocators,
        notes,
    })
}

/// Median cost of each shape for each allocator, all runs in shuffled order.
fn measure_table(
    contenders: &[Contender],
    shapes: &[Shape],
    args: &Args,
    progress: &Progress,
) -> Result<Vec<Vec<Cost>>> {
    let mut jobs: Vec<(usize, usize)> = (0..contenders.len())
        .flat_map(|who| (0..shapes.len()).map(move |what| (who, what)))
        .collect();
    let mut costs = vec![vec![Vec::new(); shapes.len()]; contenders.len()];
    let mut random = Random::seeded(0);
    let all = jobs.len() * usize::try_from(args.runs)?;
    let mut done = 0;
    for _ in 0..args.runs {
        random.shuffle(&mut jobs);
        for &(who, what) in &jobs {
            let name = &contenders[who].name;
            progress.show(&format!(
                "{done} of {all}: {name}, {}",
                bytes(shapes[what].size)
            ));
            costs[who][what].push(ask(shapes[what], &contenders[who].settings, args.time)?);
            if interrupt::requested().is_some() {
                bail!("interrupted before all sizes were measured");
            }
            done += 1;
        }
    }
    Ok(costs
        .into_iter()
        .map(|row| row.into_iter().map(median).collect())
        .collect())
}

/// The cost in the middle by CPU time.
fn median(mut costs: Vec<Cost>) -> Cost {
    costs.sort_by(|a, b| a.cpu_ns.total_cmp(&b.cpu_ns));
    costs.swap_remove(costs.len() / 2)
}

impl Args {
    fn shapes(&self) -> Result<Vec<Shape>> {
        let single = |size| Shape { size, blocks: 1 };
        if !self.sizes.is_empty() {
            return Ok(self.sizes.iter().copied().map(single).collect());
        }
        let size = |text: &&str| block_size(text).map_err(|wrong| anyhow!(wrong));
        let sizes = SIZES.iter().map(size).collect::<Result<Vec<_>>>()?;
        let totals = TOTALS.iter().map(size).collect::<Result<Vec<_>>>()?;
        let small = |total| Shape {
            size: SMALL_BLOCK,
            blocks: total / SMALL_BLOCK,
        };
        Ok(sizes
            .into_iter()
            .map(single)
            .chain(totals.into_iter().map(small))
            .collect())
    }
}

fn block_size(text: &str) -> Result<usize, String> {
    parse_size(text)
        .and_then(|size| usize::try_from(size.0).ok())
        .filter(|size| *size > 0)
        .ok_or_else(|| format!("'{text}' is no block size; write it like 126K or 4M"))
}

fn bytes(size: usize) -> Bytes {
    Bytes(u64::try_from(size).unwrap_or(u64::MAX))
}
