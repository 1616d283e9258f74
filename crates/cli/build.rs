//! Builds the pager's library and puts it into the program, so that one installed file does
//! everything. A nested cargo builds it: the library needs other settings (its exports, no
//! unwinding, always optimised) than the same crate as a part of the command line.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let library = folder.join("libpagewise_pager.so");
    let host = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let system = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pager");
    for part in [
        "pager/src",
        "pager/Cargo.toml",
        "policy/src",
        "policy/Cargo.toml",
        "wire/src",
    ] {
        let path = source.join("..").join(part);
        println!("cargo::rerun-if-changed={}", path.display());
    }
    if host == "x86_64" && system == "linux" {
        build(&source, &folder.join("pager"), &library);
    } else {
        std::fs::write(&library, []).expect("OUT_DIR is writable");
    }
}

/// Arguments that have the library carry the unwinder of its messages' backtraces, as far as it needs
/// one, instead of loading `libgcc_s.so`: every program of a run would load that as well, which took a
/// tenth of its start and end. In its place the linker finds a script that names the archives. None
/// where the compiler has no such archives.
fn unwinder_inside(folder: &Path) -> Vec<String> {
    let found = |name: &str| {
        let words = format!("-print-file-name={name}");
        let output = Command::new("cc").arg(words).output().ok()?;
        let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        path.is_absolute().then_some(path)
    };
    let (Some(unwinder), Some(rest)) = (found("libgcc_eh.a"), found("libgcc.a")) else {
        return Vec::new();
    };
    let folder = folder.join("archives");
    let script = format!("GROUP ( {} {} )\n", unwinder.display(), rest.display());
    std::fs::create_dir_all(&folder).expect("OUT_DIR is writable");
    std::fs::write(folder.join("libgcc_s.so"), script).expect("OUT_DIR is writable");
    let place = format!("native={}", folder.display());
    ["--", "-L", &place].map(str::to_owned).to_vec()
}

fn build(source: &Path, target: &Path, library: &Path) {
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets CARGO"));
    cargo
        .args([
            "rustc",
            "--release",
            "--features",
            "preload",
            "--lib",
            "--manifest-path",
        ])
        .arg(source.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        // The outer build has fetched everything and settled the versions.
        .args(["--offline", "--quiet"])
        .args(unwinder_inside(target))
        .env("CARGO_PROFILE_RELEASE_PANIC", "abort")
        .env("CARGO_PROFILE_RELEASE_LTO", "thin")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only");
    // Settings that are meant for the outer build.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let outer = text.starts_with("CARGO_CFG_")
            || text.starts_with("CARGO_FEATURE_")
            || text.starts_with("CARGO_PKG_")
            || [
                "CARGO_ENCODED_RUSTFLAGS",
                "RUSTFLAGS",
                "CARGO_MAKEFLAGS",
                "RUSTC_WORKSPACE_WRAPPER",
            ]
            .contains(&&*text);
        if outer {
            cargo.env_remove(&name);
        }
    }
    let status = cargo.status().expect("cargo runs");
    assert!(status.success(), "the pager's library does not build");
    let built = target.join("release/libpagewise_pager.so");
    std::fs::copy(&built, library).expect("the library is there");
}
