//! The experiment of "A Study in Malloc" (Ezolt, 2001) on any allocator: take a block, touch it,
//! give it back; from which size on does each block involve the kernel?

mod plan;
mod threshold;

use super::cycle::ask;
use crate::Listener;
use anyhow::{Result, anyhow, bail};
use pagewise_linux::allocation_cost::{Shape, page_size};
use pagewise_linux::process::interrupt;
use pagewise_model::answer::Document;
use pagewise_model::bench::{AllocatorBench, AllocatorRow, Contender, Cost, Measured};
use pagewise_model::units::Bytes;
use pagewise_stats::Random;
use plan::contenders;
use std::path::PathBuf;
use std::time::Duration;

/// Sizes of single blocks.
const SIZES: [&str; 12] = [
    "4K", "16K", "64K", "126K", "127K", "128K", "256K", "1M", "4M", "16M", "32M", "64M",
];

/// Total sizes of blocks that are taken one by one and given back together.
const TOTALS: [&str; 5] = ["256K", "1M", "4M", "16M", "64M"];

/// Size of each of these blocks: below every allocator's mmap threshold.
const SMALL_BLOCK: usize = 16 << 10;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Request {
    /// Block sizes; if empty, usual ones, and many small blocks together.
    pub sizes: Vec<usize>,
    /// Libraries of other allocators.
    pub libraries: Vec<PathBuf>,
    /// Texts, one of which an allocator's name must contain; all allocators if empty.
    pub only: Vec<String>,
    /// Fresh processes for each measurement.
    pub runs: u32,
    /// Time for each process.
    pub time: Duration,
}

/// Measures everything requested.
///
/// # Errors
/// If there is no such allocator, a measurement fails, or we are interrupted.
pub fn measure(args: &Request, progress: &Listener<'_>) -> Result<Document<AllocatorBench>> {
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
    let mut table = measure_table(&contenders, &shapes, args, progress)?;
    let mut allocators = Vec::new();
    for (contender, costs) in contenders.into_iter().zip(table.drain(..)) {
        progress(&format!("{}: looking for its threshold", contender.name));
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
    let found = AllocatorBench {
        page_bytes: bytes(page_size()),
        glibc: pagewise_linux::allocation_cost::glibc_version(),
        allocators,
    };
    Ok(Document::new(found).with_notes(notes))
}

/// Median cost of each shape for each allocator, all runs in shuffled order.
fn measure_table(
    contenders: &[Contender],
    shapes: &[Shape],
    args: &Request,
    progress: &Listener<'_>,
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
            progress(&format!(
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

/// The median cost by CPU time.
fn median(mut costs: Vec<Cost>) -> Cost {
    costs.sort_by(|a, b| a.cpu_ns.total_cmp(&b.cpu_ns));
    costs.swap_remove(costs.len() / 2)
}

impl Request {
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

/// A block size such as `126K`.
///
/// # Errors
/// If it is not valid.
pub fn block_size(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .and_then(|size: Bytes| usize::try_from(size.0).ok())
        .filter(|size| *size > 0)
        .ok_or_else(|| format!("'{text}' is not a block size; examples: 126K, 4M"))
}

fn bytes(size: usize) -> Bytes {
    Bytes(u64::try_from(size).unwrap_or(u64::MAX))
}
