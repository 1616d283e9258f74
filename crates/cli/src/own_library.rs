//! Writes the embedded libraries to files that the dynamic linker can open.

use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;
use pagewise_linux::own_folder;
use pagewise_linux::proc::runtime::Libc;
use pagewise_linux::sys::mapped_file::check_executable;
use pagewise_model::capability::{Availability, Capability};
use pagewise_operate::paged_run::ELSEWHERE;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A library that this program holds.
#[derive(Clone, Copy)]
enum Library {
    Pager,
    Sampler,
}

impl Library {
    /// That for programs of `libc` from the build script, packed by gzip; empty if it built none.
    fn packed(self, libc: Libc) -> &'static [u8] {
        macro_rules! built {
            ($name:literal) => {
                include_bytes!(concat!(env!("OUT_DIR"), "/libpagewise_", $name, ".so.gz"))
            };
        }
        match (self, libc) {
            (Self::Pager, Libc::Glibc) => built!("pager-glibc"),
            (Self::Pager, Libc::Musl) => built!("pager-musl"),
            (Self::Sampler, Libc::Glibc) => built!("sampler-glibc"),
            (Self::Sampler, Libc::Musl) => built!("sampler-musl"),
        }
    }

    /// The start of its file's name.
    fn prefix(self) -> &'static str {
        match self {
            Self::Pager => "libpagewise_pager",
            Self::Sampler => "libpagewise_sampler",
        }
    }

    /// The variable that names another build of it, for work on the library alone.
    fn variable(self) -> &'static str {
        match self {
            Self::Pager => "PAGEWISE_PAGER_LIBRARY",
            Self::Sampler => "PAGEWISE_SAMPLER_LIBRARY",
        }
    }

    /// Why this build has none.
    fn absence(self, libc: Libc) -> &'static str {
        match self {
            Self::Pager => absence(libc),
            Self::Sampler if !cfg!(target_arch = "x86_64") => {
                "allocations can be sampled on x86-64 only"
            }
            Self::Sampler => {
                "the program is linked with another libc than this pagewise: use the static build of pagewise (--target x86_64-unknown-linux-musl), which samples programs of both musl and glibc"
            }
        }
    }
}

/// Takes some milliseconds, which each run can afford: what a folder holds is compared with it.
fn unpacked(packed: &[u8]) -> Result<Vec<u8>> {
    let mut library = Vec::new();
    let read = GzDecoder::new(packed).read_to_end(&mut library);
    read.context("a library in this program is damaged")?;
    Ok(library)
}

/// How long an unused library is kept.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// A file with the pager's library for programs of `libc`, in a folder of the user's own that no one else
/// can write to. Its name contains a hash of its contents, so that different builds do not disturb
/// each other's runs: a program that executes another loads the library by this name once more.
/// Kept for the next run.
///
/// `PAGEWISE_PAGER_LIBRARY` names another build of it, for work on the library alone.
pub fn installed(libc: Libc) -> Result<PathBuf> {
    installed_one(Library::Pager, libc)
}

/// The same of the library that samples allocations; `PAGEWISE_SAMPLER_LIBRARY` names another build of it.
pub fn sampler(libc: Libc) -> Result<PathBuf> {
    installed_one(Library::Sampler, libc)
}

fn installed_one(which: Library, libc: Libc) -> Result<PathBuf> {
    let variable = which.variable();
    if let Some(other) = std::env::var_os(variable) {
        return fs::canonicalize(&other)
            .with_context(|| format!("{variable}: {}", other.display()));
    }
    let packed = which.packed(libc);
    if packed.is_empty() {
        bail!("{}", which.absence(libc));
    }
    let library = &unpacked(packed)?;
    let mut last = None;
    for folder in folders() {
        match installed_in(&folder, which.prefix(), library) {
            Ok(path) => return Ok(path),
            Err(error) => last = last.or(Some(error)),
        }
    }
    Err(last.unwrap_or_else(|| anyhow::anyhow!("there is no folder for a library to preload")))
}

/// Why this build has no library of the pager.
fn absence(libc: Libc) -> &'static str {
    if !cfg!(target_arch = "x86_64") {
        return ELSEWHERE;
    }
    match libc {
        Libc::Glibc => {
            "the program is linked with glibc; this build of pagewise can only page programs linked with musl"
        }
        Libc::Musl => {
            "the program is linked with another libc than this pagewise: use the static build of pagewise (--target x86_64-unknown-linux-musl), which pages programs of both musl and glibc"
        }
    }
}

/// Which programs `pagewise run` of this build can page.
pub fn capability() -> Capability {
    judged([Libc::Glibc, Libc::Musl].map(|libc| !Library::Pager.packed(libc).is_empty()))
}

fn judged([glibc, musl]: [bool; 2]) -> Capability {
    let (state, finding, consequence) = match (glibc, musl) {
        (true, true) => (
            Availability::Available,
            "this build has the pager's libraries for glibc and musl",
            "User-level paging works for programs of either libc.",
        ),
        (true, false) => (
            Availability::Limited,
            "this build has the pager's library for glibc only",
            "User-level paging works for programs of glibc, not for those of musl.",
        ),
        (false, true) => (
            Availability::Limited,
            "this build has the pager's library for musl only",
            "User-level paging works for programs of musl, not for those of glibc.",
        ),
        (false, false) => (
            Availability::Missing,
            absence(Libc::Glibc),
            "User-level paging does not work.",
        ),
    };
    let both = "build it with --target x86_64-unknown-linux-musl on x86-64 Linux with glibc: that has both";
    Capability {
        name: "run.libraries".to_owned(),
        state,
        finding: finding.to_owned(),
        consequence: consequence.to_owned(),
        remedy: (state == Availability::Limited).then(|| both.to_owned()),
    }
}

/// The library in `folder`, ready to be loaded by programs.
fn installed_in(folder: &Path, prefix: &str, library: &[u8]) -> Result<PathBuf> {
    private(folder)?;
    let path = folder.join(name(prefix, library));
    if holds(&path, library) {
        // Marks it as in use, for the sweep of other builds. Nothing depends on it.
        let _ = File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(SystemTime::now()));
    } else {
        write(folder, &path, library)
            .with_context(|| format!("cannot write a library to {}", path.display()))?;
        sweep(folder, prefix);
    }
    check_executable(&File::open(&path)?).with_context(|| {
        format!(
            "no code can run from {} (is its file system mounted noexec?): point XDG_CACHE_HOME to another folder",
            folder.display()
        )
    })?;
    Ok(path)
}

/// The prefix, `-`, a hash of the contents, `.so`.
fn name(prefix: &str, library: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(library);
    format!("{prefix}-{:016x}.so", hasher.finish())
}

/// Removes libraries of other builds that have not been used for a long time.
fn sweep(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(prefix);
        let modified = entry.metadata().and_then(|data| data.modified()).ok();
        let age = modified.and_then(|time| time.elapsed().ok());
        if ours && age.is_some_and(|age| age > KEPT) {
            // Another run may have removed it first.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// `$XDG_CACHE_HOME/pagewise`, then, if there is no home folder or it is unsuitable, one in the
/// temporary folder.
fn folders() -> impl Iterator<Item = PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| Path::new(&home).join(".cache")));
    let base = base.map(|base| base.join("pagewise"));
    base.into_iter().chain([own_folder::temporary()])
}

/// Creates `folder` with access only for its owner, or checks that an existing one is private and
/// usable for preloading.
fn private(folder: &Path) -> Result<()> {
    // ld.so splits LD_PRELOAD at both characters.
    if folder.to_string_lossy().contains([' ', ':']) {
        bail!(
            "{}: a path with spaces or colons cannot be preloaded",
            folder.display()
        );
    }
    own_folder::make(folder).with_context(|| format!("cannot use {}", folder.display()))
}

fn holds(path: &Path, library: &[u8]) -> bool {
    let Ok(mut file) = File::open(path) else {
        return false;
    };
    let mut bytes = Vec::with_capacity(library.len());
    file.read_to_end(&mut bytes).is_ok() && bytes == library
}

/// Written next to it and then renamed: a program being started never sees half a library.
fn write(folder: &Path, path: &Path, library: &[u8]) -> Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(library)?;
    file.as_file()
        .set_permissions(fs::Permissions::from_mode(0o700))?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_says_whose_programs_a_build_can_page() {
        let of = |built| {
            let found = judged(built);
            (found.state, found.remedy.is_some())
        };
        assert_eq!(of([true, true]), (Availability::Available, false));
        assert_eq!(of([true, false]), (Availability::Limited, true));
        assert_eq!(of([false, true]), (Availability::Limited, true));
        assert_eq!(of([false, false]), (Availability::Missing, false));
        assert!(
            judged([false, true])
                .consequence
                .ends_with("not for those of glibc.")
        );
    }
}
