//! Builds the pager's libraries, one for each libc, and puts them into the program, so that one
//! installed file does everything. A nested cargo builds them: they need other settings (their
//! exports, no unwinding, always optimised) than the same crate as a part of the command line.

mod flags;
mod library;
mod settings;
mod topics;

use settings::{Libc, Target};
use std::env;
use std::path::{Path, PathBuf};

/// The library's crates, by their folders in the repository.
const CRATES: [&str; 3] = ["pager", "policy", "wire"];

fn main() {
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let pager = source("pager");
    for name in CRATES {
        for part in ["src", "Cargo.toml"] {
            rerun_if_changed(&source(name).join(part));
        }
    }
    rerun_if_changed(&workspace_lock());
    println!("cargo::rerun-if-env-changed=RUSTFLAGS");
    topics::write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("docs"), &folder);
    for (libc, name) in [(Libc::Glibc, "glibc"), (Libc::Musl, "musl")] {
        let built = match Target::of_library(libc) {
            Some(target) => library::build(&pager, &folder.join(name), &target),
            // `pagewise run` says that it has none.
            None => Vec::new(),
        };
        let file = folder.join(format!("libpagewise_pager-{name}.so"));
        std::fs::write(file, built).expect("OUT_DIR is writable");
    }
}

/// Where a crate of the library lies: beside this one in the repository, or among the packages that
/// a registry or `cargo vendor` unpacked.
fn source(name: &str) -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let version = env!("CARGO_PKG_VERSION");
    [
        name.to_owned(),
        format!("pagewise-{name}-{version}"),
        format!("pagewise-{name}"),
    ]
    .map(|folder| beside.join(folder))
    .into_iter()
    .find(|folder| folder.join("Cargo.toml").exists())
    .unwrap_or_else(|| {
        panic!(
            "there is no source of pagewise-{name} in {}",
            beside.display()
        )
    })
}

/// The versions that the repository was tested with.
fn workspace_lock() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock")
}

/// A path that is not there would have cargo run us each time.
fn rerun_if_changed(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
