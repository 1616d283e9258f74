//! The package of the nested build: a workspace in `OUT_DIR` with the library's crates as members.
//!
//! Cargo identifies a crate outside a workspace by its absolute path, which affects symbols and
//! thus the order of the code; inside, by its path from the workspace. The same applies to file
//! names in panic messages.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// The library's crates, by their folders in the repository's `crates`.
pub const CRATES: [&str; 3] = ["pager", "policy", "wire"];

const MANIFEST: &str = r#"[package]
name = "pagewise-pager-library"
version = "0.0.0"
edition = "2024"

[lib]
name = "pagewise_pager_library"
crate-type = ["cdylib"]
path = "lib.rs"

[dependencies]
pagewise-pager = { workspace = true, features = ["preload"] }

[workspace]
members = ["crates/*"]
"#;

/// Writes the package into `folder`, from the repository's `root`.
pub fn write(root: &Path, folder: &Path) -> io::Result<()> {
    let outer = fs::read_to_string(root.join("Cargo.toml"))?;
    let manifest = format!("{MANIFEST}\n{}", sections(&outer, is_inherited));
    fs::create_dir_all(folder)?;
    fs::write(
        folder.join("lib.rs"),
        "#![no_std]\nextern crate pagewise_pager;\n",
    )?;
    fs::write(folder.join("Cargo.toml"), manifest)?;
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
