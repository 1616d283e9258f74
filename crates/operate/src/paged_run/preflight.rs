//! Checks before the program runs: no run is better than one without a budget.

use anyhow::{Result, bail};
use pagewise_linux::proc::runtime::Obstacle;
use pagewise_model::units::Bytes;
use pagewise_wire::settings::Settings;
use pagewise_wire::{snapshot, store};
use rustix::process::{Resource, getrlimit};
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Least size of a store in bytes: below it not even one batch of pages can be evicted.
const LEAST_STORE: u64 = 1 << 20;

/// Checks the store as the program's process will create it, and limits on file sizes.
///
/// # Errors
/// With the reason and a remedy.
pub fn check(settings: &mut Settings, say: &dyn Fn(&str)) -> Result<()> {
    if let Err(errno) = try_store(Path::new(OsStr::from_bytes(settings.store.as_bytes()))) {
        let place = settings.store.to_string_lossy();
        bail!("--store {place}: {}", store::refusal(errno));
    }
    if let Some(most) = largest_file() {
        limit_store(settings, most, say)?;
    }
    Ok(())
}

/// Whether this process could create a store at `path`, as the pager does it; nothing is left behind. The
/// `errno` if not.
fn try_store(path: &Path) -> Result<(), i32> {
    let errno = |error: std::io::Error| error.raw_os_error().unwrap_or_default();
    let mode = path.metadata().map_err(errno)?.mode();
    let flags = store::flags(mode)?;
    let open = |flags: i32| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(flags);
        options.open(path).map(drop)
    };
    open(flags | libc::O_DIRECT)
        .or_else(|_| open(flags))
        .map_err(errno)
}

/// Checks that the run's own file may be created: beyond the limit the kernel ends a process.
///
/// # Errors
/// With a remedy.
pub fn check_file_limit() -> Result<()> {
    match largest_file() {
        Some(most) if most < snapshot::BYTES as u64 => bail!(
            "the file size limit is {most} bytes (ulimit -f); the run's own files need {}, and the store needs --store-size: ulimit -f unlimited",
            snapshot::BYTES
        ),
        _ => Ok(()),
    }
}

/// Largest file that this process may write; `None` if there is no limit.
fn largest_file() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// Keeps the store's file within a limit of `most` bytes.
fn limit_store(settings: &mut Settings, most: u64, say: &dyn Fn(&str)) -> Result<()> {
    let stored = settings.store_kind != "compressed";
    let is_file = !Path::new(&*settings.store.to_string_lossy())
        .metadata()
        .is_ok_and(|data| std::os::unix::fs::FileTypeExt::is_block_device(&data.file_type()));
    if !stored || !is_file || most >= settings.store_bytes {
        return Ok(());
    }
    if most < LEAST_STORE {
        bail!(
            "the file size limit leaves the store {most} bytes (ulimit -f): ulimit -f unlimited, or --store-kind compressed"
        );
    }
    say(&format!(
        "the file size limit (ulimit -f) limits the store to {} instead of the {} of --store-size",
        Bytes(most),
        Bytes(settings.store_bytes)
    ));
    settings.store_bytes = most;
    Ok(())
}

/// Why `path` cannot be paged by the pager.
pub fn why(path: &Path, obstacle: Obstacle) -> String {
    let path = path.display();
    match obstacle {
        Obstacle::Static => {
            format!("{path} is linked statically: a preloaded library cannot reach it")
        }
        Obstacle::OtherLibc => format!(
            "{path} is linked with a libc other than glibc or musl, whose dynamic linkers the pager's libraries need"
        ),
        Obstacle::Go => format!(
            "{path} is a Go program: its runtime maps memory with its own system calls, bypassing any library"
        ),
        Obstacle::Sanitizer(name) => {
            format!("{path} is built with {name}, whose runtime manages all memory itself")
        }
        Obstacle::OtherWordSize => format!("{path} is not a 64-bit program; the pager is"),
        Obstacle::Privileged => {
            format!("{path} is set-user-ID: the linker ignores preloaded libraries for it")
        }
    }
}

/// The same, and the remedy.
pub fn refusal(path: &Path, obstacle: Obstacle) -> String {
    let remedy = match obstacle {
        Obstacle::Static => "Link it dynamically, or run it as root, where the kernel pages it.",
        Obstacle::OtherLibc => "Run it as root, where the kernel pages it.",
        Obstacle::Go => "Run it as root, where the kernel pages it (and GOMEMLIMIT).",
        Obstacle::Sanitizer(_) => {
            "Build it without -fsanitize, or run it as root, where the kernel pages it."
        }
        Obstacle::OtherWordSize => {
            "Build it for x86-64, or run it as root, where the kernel pages it."
        }
        Obstacle::Privileged => "Run it as its owner, or as root, where the kernel pages it.",
    };
    format!("{}. {remedy}", why(path, obstacle))
}
