//! Who holds the memory of a program: its allocations, sampled by our library inside it.

mod stacks;

use crate::explain::OwnLibrary;
use anyhow::{Context, Result, bail};
use pagewise_linux::proc::runtime::{self, Obstacle};
use pagewise_linux::process::Launch;
use pagewise_linux::symbols::Symbolizer;
use pagewise_model::advice::{Setting, Settings};
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::answer::Document;
use pagewise_model::memory::{Holders, Memory, ProcessHolders};
use pagewise_model::quantity::{count, percent, share};
use pagewise_model::units::Bytes;
use pagewise_sampler::{VARIABLE, layout, reading};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How allocations are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Mean number of allocated bytes between two samples.
    pub period: Bytes,
    /// Seed of the draws, for tests; 0 for a random one.
    pub seed: u64,
}

impl Rate {
    /// Costs a program that does nothing but allocate 1 to 3 % of its CPU time; 1 GiB of live memory has
    /// 2000 samples.
    pub const USUAL: Self = Self {
        period: Bytes(512 << 10),
        seed: 0,
    };
}

/// The sampler of one run.
pub struct Sampling {
    file: File,
    library: PathBuf,
    began: SystemTime,
}

impl Sampling {
    /// Prepares for `launch`.
    ///
    /// # Errors
    /// If the library cannot be loaded into its program, or a limit leaves no room for what it writes.
    pub fn new(launch: &Launch, rate: Rate, library: OwnLibrary) -> Result<Self> {
        let program = launch.path()?;
        if let Some(obstacle) = runtime::obstacle(&program) {
            bail!("{}", refusal(&program, obstacle));
        }
        let Some(libc) = runtime::libc(&program) else {
            bail!(
                "{}: allocations of a program without a dynamic linker cannot be sampled",
                program.display()
            );
        };
        let library = library(libc)?;
        let most = getrlimit(Resource::Fsize).current;
        if let Some(most) = most.filter(|&most| most < layout::FILE_BYTES) {
            bail!(
                "the file size limit is {most} bytes (ulimit -f); the file for samples needs {}, of which only what is used takes memory: ulimit -f unlimited",
                layout::FILE_BYTES
            );
        }
        let file = memfd_create("pagewise-allocations", MemfdFlags::CLOEXEC)
            .context("cannot create the file for samples")?;
        ftruncate(&file, layout::FILE_BYTES).context("cannot size the file for samples")?;
        let file = File::from(file);
        file.write_all_at(&reading::header(rate.period.0.max(1), rate.seed), 0)
            .context("cannot write to the file for samples")?;
        Ok(Self {
            file,
            library,
            began: SystemTime::now(),
        })
    }

    /// The launch with the sampler in it.
    ///
    /// # Errors
    /// If the library's path is not Unicode.
    pub fn applied(&self, launch: &Launch) -> Result<Launch> {
        let path = self.library.to_str();
        let path = path.with_context(|| format!("{}: not Unicode", self.library.display()))?;
        let own = std::process::id();
        let settings = [
            Setting::Preload {
                path: path.to_owned(),
            },
            // Programs open it by this path: they close descriptors that they do not know.
            Setting::Env {
                name: VARIABLE.to_owned(),
                value: format!("/proc/{own}/fd/{}", self.file.as_raw_fd()),
            },
        ];
        let all = launch.settings.0.iter().cloned().chain(settings);
        Ok(Launch {
            settings: Settings(all.collect()),
            ..launch.clone()
        })
    }

    /// Adds what was sampled to the account of the run.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn add_to(&self, document: &mut Document<Memory>) -> Result<()> {
        let sampled = reading::read(&self.file).context("cannot read the samples")?;
        let mut symbolizer = Symbolizer::new();
        let processes = sampled.processes.into_iter();
        let processes =
            processes.map(|process| stacks::holders(process, &mut symbolizer, self.began));
        let mut processes: Vec<ProcessHolders> = processes.collect();
        processes.sort_by(|a, b| b.peak.bytes.value.total_cmp(&a.peak.bytes.value));
        let holders = Holders {
            period: Bytes(sampled.period),
            refused: sampled.refused.into(),
            processes,
        };
        document.notes.extend(notes(&holders, &document.evidence));
        document.notes.extend(symbolizer.note());
        document.evidence.holders = Some(holders);
        Ok(())
    }
}

/// Why allocations of `path` cannot be sampled, and the remedy.
fn refusal(path: &Path, obstacle: Obstacle) -> String {
    let path = path.display();
    match obstacle {
        Obstacle::Static => format!(
            "{path} is linked statically: a preloaded library cannot reach its allocator. Link it dynamically."
        ),
        Obstacle::Go => format!(
            "{path} is a Go program, which does not allocate by malloc: use its own heap profile (runtime/pprof)."
        ),
        Obstacle::Sanitizer(name) => format!(
            "{path} is built with {name}, whose runtime replaces the allocator. Build it without -fsanitize."
        ),
        Obstacle::OtherLibc => {
            format!("{path} is linked with a libc other than glibc or musl.")
        }
        Obstacle::OtherWordSize => format!("{path} is not a 64-bit program. Build it for x86-64."),
        Obstacle::Privileged => format!(
            "{path} is set-user-ID: the linker ignores preloaded libraries for it. Run it as its owner."
        ),
    }
}

/// What a reader of the stacks should know.
fn notes(holders: &Holders, memory: &Memory) -> Vec<String> {
    let mut notes = Vec::new();
    if holders.processes.is_empty() {
        notes.push(
            "No allocation was seen: the program may have an allocator of its own inside, have cleared its environment, or run as another user."
                .to_owned(),
        );
    }
    if holders.refused > 0 {
        notes.push(format!(
            "{} processes were not sampled: there is room for {}.",
            count(holders.refused),
            layout::SEGMENTS
        ));
    }
    if let Some(process) = holders.processes.iter().find(|process| process.bypassed) {
        notes.push(format!(
            "The allocator of {} has a new and delete of its own that do not call malloc: what C++ allocates is not in the stacks. The allocator's own profiler has it.",
            process.program
        ));
    }
    let of_all = |part: fn(&ProcessHolders) -> u64| holders.processes.iter().map(part).sum::<u64>();
    let samples = of_all(|process| process.samples);
    let part = |lost| percent(share(lost, samples.max(1)));
    let missing = of_all(|process| process.untracked);
    if missing > 0 {
        notes.push(format!(
            "{} samples are missing: more blocks are live than there is room for. A larger --period helps.",
            count(missing)
        ));
    }
    let crowded = of_all(|process| process.crowded);
    if crowded > 0 {
        notes.push(format!(
            "{} of the samples have no stack: there are more distinct ones than there is room for.",
            part(crowded)
        ));
    }
    let cut = of_all(|process| process.cut);
    if cut > 0 {
        notes.push(format!(
            "{} of the samples have more than {} frames; their outermost ones are missing.",
            part(cut),
            layout::FRAMES
        ));
    }
    let heaps = memory
        .judged()
        .into_iter()
        .flat_map(|moment| &moment.processes);
    if heaps
        .flat_map(|process| &process.heaps)
        .any(|heap| heap.allocator == AllocatorKind::Cpython)
    {
        notes.push(
            "Python takes blocks of up to 512 bytes from arenas of its own, which are not in the stacks: PYTHONMALLOC=malloc shows them, too."
                .to_owned(),
        );
    }
    notes
}
