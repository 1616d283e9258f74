//! perf's own store of files by build id, filled by `perf record` and `perf buildid-cache`, so that
//! a recording can be read after the programs were updated or removed.
//!
//! ```text
//! ~/.debug/.build-id/ab/cdef…  ->  ../../usr/bin/program/abcdef…/     with elf, debug, …
//! ```
//! Before perf 4.11 the link leads to the file itself (tools/perf/util/build-id.c).

use super::debuginfod::Artefact;
use std::path::{Path, PathBuf};

/// A store, if there is one.
#[derive(Debug, Default)]
pub struct BuildIdCache {
    folder: Option<PathBuf>,
}

impl BuildIdCache {
    /// perf's store: in `PERF_BUILDID_DIR`, otherwise in `buildid.dir` of perf's configuration,
    /// otherwise in `~/.debug`.
    #[must_use]
    pub fn of_perf() -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = variable("HOME").map(PathBuf::from);
        let files = match variable("PERF_CONFIG") {
            Some(only) => vec![PathBuf::from(only)],
            None => {
                let own = home.iter().map(|home| home.join(".perfconfig"));
                own.chain([PathBuf::from("/etc/perfconfig")]).collect()
            }
        };
        let configured = || {
            let texts = files
                .iter()
                .filter_map(|file| std::fs::read_to_string(file).ok());
            let place = texts.filter_map(|text| configured_folder(&text)).next()?;
            match (place.strip_prefix("~/"), &home) {
                (Some(below), Some(home)) => Some(home.join(below)),
                _ => Some(PathBuf::from(place)),
            }
        };
        let folder = variable("PERF_BUILDID_DIR").map(PathBuf::from);
        let folder = folder.or_else(configured);
        Self {
            folder: folder.or_else(|| Some(home?.join(".debug"))),
        }
    }

    /// The store in this folder.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: Some(folder.to_owned()),
        }
    }

    /// The file with this build id.
    pub(super) fn find(&self, artefact: Artefact, build_id: &[u8]) -> Option<PathBuf> {
        let (first, rest) = build_id.split_first()?;
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        let below = self
            .folder
            .as_ref()?
            .join(".build-id")
            .join(format!("{first:02x}"));
        let entry = below.join(rest);
        let file = match (entry.is_dir(), artefact) {
            (false, _) => entry,
            (true, Artefact::Executable) => entry.join("elf"),
            (true, Artefact::DebugInformation) => {
                let debug = entry.join("debug");
                if debug.is_file() {
                    debug
                } else {
                    entry.join("elf")
                }
            }
        };
        file.is_file().then_some(file)
    }
}

/// `dir = …` of the section `[buildid]` (perf-config(1)).
fn configured_folder(text: &str) -> Option<String> {
    let mut is_in_section = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_in_section = line == "[buildid]";
        } else if let Some(("dir", place)) = line.split_once('=').map(|(a, b)| (a.trim(), b.trim()))
            && is_in_section
        {
            return Some(place.trim_matches('"').to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn both_layouts_of_the_store_are_read() {
        let root = tempfile::tempdir().unwrap();
        let entries = root.path().join(".build-id/ab");
        fs::create_dir_all(entries.join("cd01")).unwrap();
        fs::write(entries.join("cd01/elf"), "new").unwrap();
        fs::write(entries.join("cd02"), "old").unwrap();
        let cache = BuildIdCache::at(root.path());
        let found = |artefact, id: &[u8]| {
            let file = cache.find(artefact, id)?;
            fs::read_to_string(file).ok()
        };
        let new = [0xab, 0xcd, 0x01];
        assert_eq!(found(Artefact::Executable, &new).as_deref(), Some("new"));
        assert_eq!(
            found(Artefact::DebugInformation, &new).as_deref(),
            Some("new")
        );
        fs::write(entries.join("cd01/debug"), "debug").unwrap();
        assert_eq!(
            found(Artefact::DebugInformation, &new).as_deref(),
            Some("debug")
        );
        let old = [0xab, 0xcd, 0x02];
        assert_eq!(found(Artefact::Executable, &old).as_deref(), Some("old"));
        assert_eq!(found(Artefact::Executable, &[0xab]), None);
        assert_eq!(found(Artefact::Executable, &[]), None);
    }

    #[test]
    fn perf_s_configuration_names_the_folder() {
        let text = "[report]\n\tdir = /no\n[buildid]\n\t# dir = /no\n\tdir = \"~/store\"\n";
        assert_eq!(configured_folder(text).as_deref(), Some("~/store"));
        assert_eq!(configured_folder("[colors]\ndir = x\n"), None);
    }
}
