//! The allocators to measure.

use crate::tune::name_of;
use anyhow::{Context, Result, bail};
use pagewise_compare::tune::recipes;
use pagewise_linux::allocation_cost::glibc_version;
use pagewise_linux::process::library;
use pagewise_model::advice::{Setting, Settings};
use pagewise_model::bench::Contender;
use std::path::{Path, PathBuf};

/// `DEFAULT_MMAP_THRESHOLD_MIN` of glibc's malloc/malloc.c, in bytes.
const GLIBC_DEFAULT_THRESHOLD: u64 = 128 << 10;
/// Larger than all measured sizes.
const NEVER: u64 = 1 << 30;

/// The system's allocator, also with glibc's threshold fixed and raised; installed allocators;
/// those given by path. Notes list what is missing.
pub fn contenders(libraries: &[PathBuf]) -> Result<(Vec<Contender>, Vec<String>)> {
    let mut all = vec![Contender {
        name: "system".to_owned(),
        settings: Settings::default(),
    }];
    let mut notes = Vec::new();
    let Some(_) = glibc_version() else {
        if !libraries.is_empty() {
            bail!(
                "this pagewise is linked statically or with a libc other than glibc: no library can be preloaded"
            );
        }
        notes.push("Only the system's allocator was measured: this pagewise is linked statically or with a libc other than glibc.".to_owned());
        return Ok((all, notes));
    };
    all.push(by_hand("glibc, fixed 128K", GLIBC_DEFAULT_THRESHOLD));
    all.push(by_hand("glibc, raised 1G", NEVER));
    for recipe in recipes()? {
        let Some(kind) = &recipe.library else {
            continue;
        };
        match library::installed(Path::new("/"), *kind) {
            Some(path) => all.push(Contender {
                name: recipe.name.clone(),
                settings: recipe.settings(None, Some(&path.to_string_lossy())),
            }),
            None => {
                let note = format!(
                    "{} is not installed, so it was not measured.",
                    name_of(*kind)
                );
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
    }
    for path in libraries {
        all.push(given(path)?);
    }
    Ok((all, notes))
}

/// glibc with both thresholds set, which disables its own adaptation.
fn by_hand(name: &str, threshold: u64) -> Contender {
    let tunable = |name: &str| Setting::GlibcTunable {
        name: format!("glibc.malloc.{name}_threshold"),
        value: threshold.to_string(),
    };
    Contender {
        name: name.to_owned(),
        settings: Settings(vec![tunable("mmap"), tunable("trim")]),
    }
}

fn given(path: &Path) -> Result<Contender> {
    let full = path
        .canonicalize()
        .with_context(|| format!("cannot find {}", path.display()))?;
    let name = full
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let path = full.to_string_lossy().into_owned();
    Ok(Contender {
        name,
        settings: Settings(vec![Setting::Preload { path }]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_an_error_that_names_it() {
        let error = contenders(&[PathBuf::from("/no/such/lib.so")]).unwrap_err();
        assert!(
            format!("{error:#}").contains("/no/such/lib.so"),
            "{error:#}"
        );
    }
}
