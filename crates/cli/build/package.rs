//! The packages of the nested build: a workspace in `OUT_DIR` with a package for each library, and the
//! libraries' crates.
//!
//! Cargo identifies a crate outside a workspace by its absolute path, which affects symbols and
//! thus the order of the code; inside, by its path from the workspace. The same applies to file
//! names in panic messages.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// The libraries, by the crate that each is made from.
pub const LIBRARIES: [&str; 2] = ["pager", "sampler"];

/// Their crates, by their folders in the repository's `crates`.
pub const CRATES: [&str; 4] = ["pager", "policy", "sampler", "wire"];

const WORKSPACE: &str = r#"[workspace]
resolver = "3"
members = ["crates/*", "libraries/*"]
"#;

/// The package of a library.
fn manifest(name: &str) -> String {
    format!(
        r#"[package]
name = "pagewise-{name}-library"
version = "0.0.0"
edition = "2024"

[lib]
name = "pagewise_{name}_library"
crate-type = ["cdylib"]
path = "lib.rs"

[dependencies]
pagewise-{name} = {{ workspace = true, features = ["preload"] }}
"#
    )
}

/// Writes the packages into `folder`, from the repository's `root`.
pub fn write(root: &Path, folder: &Path) -> io::Result<()> {
    let outer = fs::read_to_string(root.join("Cargo.toml"))?;
    let workspace = format!("{WORKSPACE}\n{}", sections(&outer, is_inherited));
    fs::create_dir_all(folder)?;
    fs::write(folder.join("Cargo.toml"), workspace)?;
    for name in LIBRARIES {
        let library = folder.join("libraries").join(name);
        fs::create_dir_all(&library)?;
        let source = format!("#![no_std]\nextern crate pagewise_{name};\n");
        fs::write(library.join("lib.rs"), source)?;
        fs::write(library.join("Cargo.toml"), manifest(name))?;
    }
    for name in CRATES {
        let (from, to) = (
            root.join("crates").join(name),
            folder.join("crates").join(name),
        );
        let manifest = fs::read_to_string(from.join("Cargo.toml"))?;
        fs::create_dir_all(&to)?;
        fs::write(to.join("Cargo.toml"), sections(&manifest, is_for_library))?;
        link(&from.join("src"), &to.join("src"))?;
    }
    Ok(())
}

/// Sections that members inherit from their workspace.
fn is_inherited(section: &str) -> bool {
    section.starts_with("[workspace.")
}

/// Excludes what tests and examples need, which a build of the command line does not fetch.
fn is_for_library(section: &str) -> bool {
    !["dev-dependencies", "[[example", "[[test", "[[bench"]
        .iter()
        .any(|other| section.contains(other))
}

/// The sections of a manifest whose headings pass `wanted`.
fn sections(manifest: &str, wanted: impl Fn(&str) -> bool) -> String {
    let mut keep = false;
    let mut kept = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            keep = wanted(line);
        }
        if keep {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// A link rather than a copy, so that cargo checks the original files for changes.
fn link(to: &Path, at: &Path) -> io::Result<()> {
    match fs::remove_file(at) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(to, at)
}
