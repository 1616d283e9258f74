//! Builds the libraries of the pager and of the sampler, one for each libc, and embeds them in the program,
//! so that a single installed file suffices. A nested cargo builds them, because they need other settings
//! (their exports, no unwinding, always optimised) than the same crate as a part of the command
//! line.

mod flags;
mod library;
mod old_glibc;
mod package;
mod settings;
mod topics;

use flate2::Compression;
use flate2::write::GzEncoder;
use settings::{Libc, Target};
use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let root = root();
    for name in package::CRATES {
        for part in ["src", "Cargo.toml"] {
            rerun_if_changed(&root.join("crates").join(name).join(part));
        }
    }
    for name in ["Cargo.toml", "Cargo.lock"] {
        rerun_if_changed(&root.join(name));
    }
    println!("cargo::rerun-if-env-changed=RUSTFLAGS");
    topics::write(&package_root().join("docs"), &folder);
    for (libc, name) in [(Libc::Glibc, "glibc"), (Libc::Musl, "musl")] {
        let built = match Target::of_library(libc) {
            Some(target) => library::build(&root, &folder.join(name), &target),
            // The commands that need them report that there are none.
            None => Default::default(),
        };
        for (library, built) in package::LIBRARIES.into_iter().zip(built) {
            lay_down(&folder.join(format!("libpagewise_{library}-{name}")), built);
        }
    }
}

/// Writes a library packed, as the program holds it, and as it is for those who examine it.
fn lay_down(at: &Path, library: Vec<u8>) {
    let packed = match library.is_empty() {
        true => Vec::new(),
        false => pack(&library),
    };
    for (end, bytes) in [("so", library), ("so.gz", packed)] {
        std::fs::write(at.with_extension(end), bytes).expect("OUT_DIR is writable");
    }
}

/// The same bytes for the same content: a gzip header without a name and a time.
fn pack(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

/// The repository.
fn root() -> PathBuf {
    let beside = package_root().join("../..");
    std::fs::canonicalize(beside).expect("the package lies in its repository")
}

/// The folder of the package that is being built: of a repository that was copied with its `target`, too,
/// where this script was compiled in another one.
fn package_root() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR")
        .expect("cargo sets it")
        .into()
}

/// For a path that does not exist, cargo would run this script each time.
fn rerun_if_changed(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
