//! Settings for the pager in the program's processes.

use super::shared::path_of;
use super::{Request, preflight};
use crate::explain::OwnLibrary;
use anyhow::{Context, Result};
use pagewise_linux::proc::runtime::Libc;
use pagewise_model::advice::{Setting, Settings as LaunchSettings};
use pagewise_model::paged_run::MIN_REGION;
use pagewise_wire::settings::{Choice, Settings, VARIABLE, WhenFull};
use std::ffi::CString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Default size of the store in bytes: at least this, and this many times the budget.
const LEAST_STORE: u64 = 4 << 30;
const STORE_FACTOR: u64 = 8;

/// Largest share of the budget for compressed pages, in percent: `auto` judges how much of it to use.
const AUTO_PACKED: u8 = 60;
const PACKED: u8 = 30;

/// Settings of a run.
///
/// # Errors
/// If a policy or store does not exist, or the store cannot be used.
pub fn for_run(
    request: &Request,
    library: &Path,
    shared: &File,
    record: Option<&File>,
    say: &dyn Fn(&str),
) -> Result<LaunchSettings> {
    let memory = request.budget.size().0;
    let [smallest_ever, smallest] = match request.min_region {
        Some(least) => [least.0; 2],
        None => [MIN_REGION.0, MIN_REGION.1],
    };
    let packed = request.compressed.unwrap_or(match &*request.store_kind {
        "auto" => AUTO_PACKED,
        _ => PACKED,
    });
    let mut settings = Settings {
        memory,
        policy: policy(&request.policy)?,
        store: store_place(&request.store)?,
        store_kind: request.store_kind.clone(),
        store_bytes: store_bytes(request),
        compressed_bytes: memory / 100 * u64::from(packed),
        encrypt: request.encrypt,
        delivery: request.delivery,
        smallest,
        smallest_ever,
        files: request.files.map_or(0, |size| size.0),
        processors: processors(),
        watch: request.heat,
        when_full: request.when_full,
        strict: request.strict,
        launcher: std::process::id(),
        shared: CString::new(path_of(shared))?,
        record: CString::new(record.map_or_else(String::new, path_of))?,
    };
    preflight::check(&mut settings, say)?;
    launch_settings(&settings, library)
}

/// Bytes that the store may take on disk.
pub fn store_bytes(request: &Request) -> u64 {
    let memory = request.budget.size().0;
    let usual = || memory.saturating_mul(STORE_FACTOR).max(LEAST_STORE);
    request.store_size.map_or_else(usual, |size| size.0)
}

/// The store's absolute path, as programs of the run may change their folder.
fn store_place(path: &Path) -> Result<CString> {
    let place = std::fs::canonicalize(path)
        .with_context(|| format!("--store {}: name a folder, file or device", path.display()))?;
    CString::new(place.as_os_str().as_bytes()).context("--store")
}

/// The policy's name, checked here rather than in the program.
fn policy(asked: &str) -> Result<String> {
    // The program may change its folder, so paths must be absolute.
    let (head, path) = match asked.split_once("replay:") {
        Some((head, path)) => (format!("{head}replay:"), path),
        None if asked.contains('/') => match asked.strip_prefix("prefetch+") {
            Some(path) => ("prefetch+".to_owned(), path),
            None => (String::new(), asked),
        },
        None => (String::new(), ""),
    };
    let name = match path {
        "" => asked.to_owned(),
        path => {
            let path = std::fs::canonicalize(path)
                .with_context(|| format!("--policy {asked}: cannot find it"))?;
            format!("{head}{}", path.display())
        }
    };
    let config = pagewise_policy::Config {
        pages: 1 << 10,
        budget: 1 << 9,
    };
    let read = |path: &str| std::fs::read(path).map_err(|why| why.to_string());
    pagewise_policy::by_name(&name, &config, read).context("--policy")?;
    Ok(name)
}

/// A budget without the files of a run, for measurements.
#[derive(Clone, Copy, Debug)]
pub struct Budgeted {
    /// Bytes that may be resident.
    pub memory: u64,
    /// Name of the policy.
    pub policy: &'static str,
    /// `fd` or `sigbus`.
    pub delivery: &'static str,
}

/// Settings that run a program under `budget`.
///
/// # Errors
/// If the pager's library cannot be written.
pub fn budgeted(budget: &Budgeted, library: OwnLibrary) -> Result<LaunchSettings> {
    let settings = Settings {
        memory: budget.memory,
        policy: budget.policy.to_owned(),
        store: CString::new("/var/tmp")?,
        store_kind: "disk".to_owned(),
        store_bytes: LEAST_STORE,
        compressed_bytes: 0,
        encrypt: false,
        delivery: match budget.delivery {
            "fd" => Choice::Handler,
            _ => Choice::Signal,
        },
        smallest: MIN_REGION.0,
        smallest_ever: MIN_REGION.0,
        files: 0,
        processors: processors(),
        watch: 0,
        when_full: WhenFull::End,
        strict: true,
        launcher: std::process::id(),
        shared: CString::default(),
        record: CString::default(),
    };
    launch_settings(&settings, &library(Libc::Glibc)?)
}

/// Number of processors for a run: those it may run on, limited by its cgroup's quota.
fn processors() -> u32 {
    let found = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(found).unwrap_or(u32::MAX)
}

fn launch_settings(settings: &Settings, library: &Path) -> Result<LaunchSettings> {
    let path = library
        .to_str()
        .context("the path of the pager's library is not valid text")?;
    Ok(LaunchSettings(vec![
        Setting::Env {
            name: VARIABLE.to_owned(),
            value: settings.to_text(),
        },
        Setting::Preload {
            path: path.to_owned(),
        },
    ]))
}
