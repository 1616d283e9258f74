//! Allocators inside programs and libraries, by texts that stripping leaves in their read-only data.

use crate::proc::elf::Elf;
use memchr::memmem;
use pagewise_families::{Family, families};
use pagewise_model::allocator::AllocatorKind;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// An allocator that a file contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contained {
    pub kind: AllocatorKind,
    pub version: Option<String>,
    /// The variable that this build reads, where builds differ in it.
    pub variable: Option<String>,
}

/// Where compilers put constant texts.
const TEXTS: &str = ".rodata";
/// The longest variable's name.
const LONGEST_NAME: usize = 64;
/// Files of which the result is kept: processes are looked at several times.
const MOST_KEPT: usize = 4096;

/// A file as it was when it was searched: device, inode, time of its last change.
type Identity = (u64, u64, i64, i64);

static KEPT: Mutex<BTreeMap<Identity, Vec<Contained>>> = Mutex::new(BTreeMap::new());

/// Allocators in this file; none if it cannot be read or is no program or library.
pub(super) fn contained(file: &Path) -> Vec<Contained> {
    let Ok(about) = fs::metadata(file) else {
        return Vec::new();
    };
    let identity = (about.dev(), about.ino(), about.mtime(), about.mtime_nsec());
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept().get(&identity) {
        return known.clone();
    }
    // A device or a pipe would block.
    let found = match about.is_file() {
        true => Elf::open(file)
            .map(|elf| searched(&elf))
            .unwrap_or_default(),
        false => Vec::new(),
    };
    let mut all = kept();
    if all.len() >= MOST_KEPT {
        all.clear();
    }
    all.insert(identity, found.clone());
    found
}

fn searched(elf: &Elf) -> Vec<Contained> {
    let marked = families().iter().filter(|family| !family.texts.is_empty());
    let mut searches: Vec<Search> = marked.map(Search::new).collect();
    elf.blocks(TEXTS, |block| {
        for search in &mut searches {
            search.look(block);
        }
    });
    searches.into_iter().filter_map(Search::found).collect()
}

/// The search for one family.
struct Search {
    family: &'static Family,
    /// Texts that were not seen yet.
    missing: Vec<Vec<u8>>,
    version: Option<String>,
    variable: Option<String>,
}

impl Search {
    fn new(family: &'static Family) -> Self {
        // The NUL before it is the end of another text: programs that only tell of it have none.
        let whole = |text: &String| [b"\0", text.as_bytes()].concat();
        Self {
            family,
            missing: family.texts.iter().map(whole).collect(),
            version: None,
            variable: None,
        }
    }

    fn look(&mut self, block: &[u8]) {
        self.missing
            .retain(|text| memmem::find(block, text).is_none());
        if let Some(name) = &self.family.prefixed {
            self.variable = self.variable.take().or_else(|| ending_in(block, name));
        }
        let version = self.version.take();
        self.version = version.or_else(|| version_in(block, self.family));
    }

    fn found(self) -> Option<Contained> {
        self.missing.is_empty().then_some(Contained {
            kind: self.family.kind,
            version: self.version,
            variable: self.variable,
        })
    }
}

/// The version that a family leaves in its texts: `5.3.0` of jemalloc's `5.3.0-0-g54eaed1d8b`, `22.11.0` of the address
/// of its sources in node.
pub(super) fn version_in(block: &[u8], family: &Family) -> Option<String> {
    let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let version = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).ok()?.trim_matches('.');
        text.contains('.').then(|| text.to_owned())
    };
    let after = family.version_after.iter().flat_map(|text| {
        memmem::find_iter(block, text.as_bytes()).filter_map(|at| {
            let rest = &block[at + text.len()..];
            version(&rest[..rest.iter().take_while(is_part).count()])
        })
    });
    let before = family.version_before.iter().flat_map(|text| {
        memmem::find_iter(block, text.as_bytes()).filter_map(|at| {
            let length = block[..at].iter().rev().take_while(is_part).count();
            version(&block[at - length..at])
        })
    });
    after.chain(before).next()
}

/// The version in the texts of a file of this family.
pub(super) fn version_of(file: &Path, family: &Family) -> Option<String> {
    let mut found = None;
    Elf::open(file)?.blocks(TEXTS, |block| {
        found = found.take().or_else(|| version_in(block, family));
    });
    found
}

/// The text that ends in `name`: `_RJEM_MALLOC_CONF` for `MALLOC_CONF`.
fn ending_in(block: &[u8], name: &str) -> Option<String> {
    let ended = [name.as_bytes(), b"\0"].concat();
    memmem::find_iter(block, &ended).find_map(|at| {
        let is_part = |byte: &&u8| byte.is_ascii_uppercase() || **byte == b'_';
        let before = block[..at].iter().rev().take_while(is_part).count();
        let is_whole = at > before && block[at - before - 1] == 0;
        let whole = &block[at - before..at + name.len()];
        let fits = is_whole && whole.len() <= LONGEST_NAME;
        fits.then(|| String::from_utf8_lossy(whole).into_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn found_in(texts: &[&str], options: &[&str]) -> Vec<Contained> {
        let folder = tempfile::tempdir().unwrap();
        let (source, library) = (folder.path().join("a.c"), folder.path().join("liba.so"));
        let listed: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
        let text = format!(
            "const char *const texts[] = {{\"x\", {}}};\n",
            listed.join(", ")
        );
        fs::write(&source, text).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-s"]).args(options);
        let built = compiler.arg(&source).arg("-o").arg(&library).status();
        assert!(built.expect("a C compiler").success());
        contained(&library)
    }

    #[test]
    fn a_stripped_library_shows_its_jemalloc_and_variable() {
        let texts = ["<jemalloc>: ", "_RJEM_MALLOC_CONF", "5.3.0-0-g54eaed1d8b"];
        let expected = Contained {
            kind: AllocatorKind::Jemalloc,
            version: Some("5.3.0".to_owned()),
            variable: Some("_RJEM_MALLOC_CONF".to_owned()),
        };
        assert_eq!(found_in(&texts, &[]), [expected]);
    }

    #[test]
    fn a_library_that_only_names_an_allocator_has_none() {
        assert_eq!(found_in(&["set MALLOC_CONF", "for <jemalloc>: "], &[]), []);
        assert_eq!(contained(Path::new("/no/such/file")), []);
        assert_eq!(contained(Path::new("/dev/null")), []);
    }

    #[test]
    fn texts_tell_versions() {
        let message =
            |kind, text: &[u8]| version_in(text, pagewise_families::family(kind).unwrap());
        let jemalloc = message(AllocatorKind::Jemalloc, b"x-0-g\0\x005.3.0-0-g54eaed1d8b");
        assert_eq!(jemalloc.as_deref(), Some("5.3.0"));
        let tcmalloc = message(AllocatorKind::Tcmalloc, b"\0gperftools 2.10\0");
        assert_eq!(tcmalloc.as_deref(), Some("2.10"));
        let node = b"https://nodejs.org/download/release/v22.11.0/node.tar.gz";
        assert_eq!(message(AllocatorKind::V8, node).as_deref(), Some("22.11.0"));
        assert_eq!(message(AllocatorKind::Jemalloc, b"-0-g"), None);
    }

    #[test]
    fn variables_are_whole_names() {
        let named = |text: &[u8]| ending_in(text, "MALLOC_CONF");
        let plain = named(b"\0MALLOC_CONF\0");
        assert_eq!(plain.as_deref(), Some("MALLOC_CONF"));
        let arrow = named(b"x\0JE_ARROW_MALLOC_CONF\0y");
        assert_eq!(arrow.as_deref(), Some("JE_ARROW_MALLOC_CONF"));
        assert_eq!(named(b"\0see MALLOC_CONF\0"), None);
        assert_eq!(named(b"MALLOC_CONF\0"), None);
    }
}
