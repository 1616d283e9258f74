//! Analysis of recordings with names from this machine's files.

use anyhow::{Context, Result};
use pagewise_answer::recording::{self, Analysis, Code};
use pagewise_formats::perf_data::{BuildId, PerfData};
use pagewise_linux::symbols::unwind::StackFollower;
use pagewise_linux::symbols::{CodePlace, KernelIdentity, Symbolizer};
use pagewise_linux::sys::mapped_file::MappedFile;
use pagewise_model::address_space::AddressSpace;
use pagewise_model::event::Event;
use pagewise_model::profile::Profile;
use pagewise_model::stack::FrameKey;
use pagewise_model::symbol::NamedList;
use std::fs::File;
use std::path::Path;

/// Analyses a recording. `done` receives the offset below which the file is no longer needed.
pub fn analyse(data: &PerfData<'_>, done: impl FnMut(usize)) -> Analysis {
    recording::analyse(data, &mut Files::new(data), done)
}

/// Analyses the perf.data file at `path`, recorded on this machine.
///
/// # Errors
/// If it cannot be read or is not a perf.data file.
pub fn of_file(path: &Path) -> Result<Analysis> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let mapped = MappedFile::map(&file).with_context(|| format!("cannot read {name}"))?;
    let data = PerfData::parse(&mapped).with_context(|| format!("cannot read {name}"))?;
    Ok(analyse(&data, |done| mapped.release(done)))
}

/// The profile of a recording, whatever it sampled, without an analysis of its faults.
pub fn profile(data: &PerfData<'_>, done: impl FnMut(usize)) -> Profile {
    recording::profile(data, &mut Files::new(data), done)
}

/// The analysis of a recording, and the build id of each file whose code was mapped.
pub fn analyse_with_builds(
    data: &PerfData<'_>,
    done: impl FnMut(usize),
) -> (Analysis, Vec<(String, Vec<u8>)>) {
    let mut files = Files::new(data);
    let analysis = recording::analyse(data, &mut files, done);
    let builds = files.builds(data.build_ids());
    (analysis, builds)
}

/// Programs and libraries, read from files.
pub(crate) struct Files {
    follower: StackFollower,
    symbolizer: Symbolizer,
}

impl Files {
    pub(crate) fn new(data: &PerfData<'_>) -> Self {
        let architecture = match data.sidecar() {
            Some(sidecar) => &sidecar.host.architecture,
            None => &data.origin().arch,
        };
        let follower = StackFollower::new(architecture).with_build_ids(data.build_ids());
        Self {
            // Recordings of perf show what perf shows.
            follower: match data.sidecar() {
                Some(_) => follower.finding_skipped_callers(),
                None => follower,
            },
            symbolizer: Symbolizer::new().of_kernel(kernel(data)),
        }
    }

    /// What follows from an event: see [`Code::follow`].
    pub(crate) fn follow(&mut self, event: &Event<'_>) -> Option<Vec<u64>> {
        self.follower.take(event)
    }

    /// The names of addresses.
    pub(crate) fn names(&mut self, keys: &[FrameKey]) -> NamedList {
        self.symbolizer
            .names(keys, self.follower.code_ever_mapped())
    }

    /// Where addresses are in the source.
    pub(crate) fn places(&mut self, keys: &[FrameKey]) -> Vec<CodePlace> {
        self.symbolizer
            .places(keys, self.follower.code_ever_mapped())
    }

    /// Short names of files with their build ids: of mapped code, and of the kernel where the
    /// recorder listed it.
    fn builds(&self, listed: &[BuildId]) -> Vec<(String, Vec<u8>)> {
        let spaces = self.follower.code_ever_mapped().values();
        let mapped = spaces.flat_map(AddressSpace::iter).filter_map(|mapping| {
            let id = mapping.build_id.as_deref()?;
            Some((short(&mapping.path), id.to_vec()))
        });
        let kernel = listed.iter().filter(|entry| entry.kernel);
        let kernel = kernel.map(|entry| match entry.path.starts_with("[kernel") {
            true => ("[kernel]".to_owned(), entry.id.clone()),
            false => (short(&entry.path), entry.id.clone()),
        });
        let mut builds: Vec<_> = mapped.chain(kernel).collect();
        builds.retain(|(_, id)| id.iter().any(|&byte| byte != 0));
        builds.sort_unstable();
        builds.dedup();
        builds
    }
}

/// The recorded kernel, by what the recorder listed.
fn kernel(data: &PerfData<'_>) -> KernelIdentity {
    let mut listed = data.build_ids().iter();
    let own = listed.find(|entry| entry.kernel && entry.path.starts_with("[kernel.kallsyms]"));
    let release = match data.sidecar() {
        Some(sidecar) if !sidecar.host.kernel.is_empty() => &sidecar.host.kernel,
        _ => &data.origin().os_release,
    };
    KernelIdentity {
        build_id: own.map(|entry| entry.id.clone()).unwrap_or_default(),
        release: release.clone(),
    }
}

fn short(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

impl Code for Files {
    fn follow(&mut self, event: &Event<'_>) -> Option<Vec<u64>> {
        Self::follow(self, event)
    }

    fn names(&mut self, keys: &[FrameKey]) -> NamedList {
        Self::names(self, keys)
    }

    fn note(&self) -> Option<String> {
        self.symbolizer.note()
    }
}
