//! The nested build: packages created in `OUT_DIR` that turn the crates of the pager and of the sampler
//! into libraries to preload.
//!
//! It is a separate workspace, so that it requires only what the libraries need. The outer build has
//! already fetched that, because the command line names the same crates among what it depends on. So
//! nothing is fetched here, and a build without a network or with vendored sources works.

use crate::flags::renamed;
use crate::old_glibc;
use crate::package;
use crate::settings::Target;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The bytes of each library of [`package::LIBRARIES`].
pub fn build(root: &Path, folder: &Path, target: &Target) -> [Vec<u8>; package::LIBRARIES.len()] {
    package::write(root, folder).expect("the sources are readable, and OUT_DIR writable");
    settle_versions(root, folder, target);
    let linking = libc_outside(&folder.join("libc"), target);
    package::LIBRARIES.map(|name| {
        let mut cargo = cargo("rustc", folder, target);
        cargo
            .env("CARGO_ENCODED_RUSTFLAGS", flags(root, folder, target))
            .arg(format!("--package=pagewise-{name}-library"))
            .args(["--release", "--target-dir"])
            .arg(folder.join("target"))
            .args(&linking);
        let status = cargo.status().expect("cargo runs");
        assert!(status.success(), "the library of the {name} does not build");
        let built = format!(
            "target/{}/release/libpagewise_{name}_library.so",
            target.name
        );
        fs::read(folder.join(built)).expect("the library is there")
    })
}

/// Uses the versions of the repository's Cargo.lock if they were fetched. `cargo install` without
/// `--locked` resolves everything to the newest versions; then only those are available.
fn settle_versions(root: &Path, folder: &Path, target: &Target) {
    let lock = folder.join("Cargo.lock");
    if fs::copy(root.join("Cargo.lock"), &lock).is_ok() && is_fetched(folder, target).is_ok() {
        return;
    }
    // The file may not exist.
    let _ = fs::remove_file(&lock);
    if let Err(why) = is_fetched(folder, target) {
        panic!("what the preloaded libraries need was not fetched by this build:\n{why}");
    }
}

/// Whether everything that the libraries need is on this machine. Writes Cargo.lock.
fn is_fetched(folder: &Path, target: &Target) -> Result<(), String> {
    let output = cargo("fetch", folder, target).output().expect("cargo runs");
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// A cargo in the outer one's folder, so that it reads the same configuration (sources, linkers),
/// without the settings that are meant only for the outer build.
fn cargo(command: &str, folder: &Path, target: &Target) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets CARGO"));
    cargo
        .arg(command)
        .arg("--manifest-path")
        .arg(folder.join("Cargo.toml"))
        .args(["--offline", "--quiet", "--target", &target.name]);
    for (name, _) in env::vars_os() {
        if is_outer(&name.to_string_lossy()) {
            cargo.env_remove(&name);
        }
    }
    let has_lines = !is_stripped()
        && env::var("DEBUG").is_ok_and(|level| !["false", "0", "none"].contains(&&*level));
    let (debug, strip) = match has_lines {
        true => ("line-tables-only", "none"),
        false => ("none", "symbols"),
    };
    // A program that is not optimised itself was built to be tried or tested.
    let lto = match env::var("OPT_LEVEL").as_deref() {
        Ok("0" | "1") => "off",
        _ => "thin",
    };
    let checked = match env::var("PROFILE").as_deref() {
        Ok("debug") => "true",
        _ => "false",
    };
    let settings = [
        ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
        ("CARGO_PROFILE_RELEASE_LTO", lto),
        ("CARGO_PROFILE_RELEASE_DEBUG", debug),
        ("CARGO_PROFILE_RELEASE_STRIP", strip),
        // In a debug build, the library checks its invariants at each fault.
        ("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", checked),
        ("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "false"),
    ];
    // By default it might be the folder that the outer cargo has locked.
    cargo
        .envs(settings)
        .env("CARGO_BUILD_BUILD_DIR", folder.join("target"));
    if let Some(linker) = &target.linker {
        let name = target.name.to_uppercase().replace(['-', '.'], "_");
        cargo.env(format!("CARGO_TARGET_{name}_LINKER"), linker);
    }
    cargo
}

/// Whether the library is built without line tables and symbols even if the program has them:
/// stripping the program after the build does not reach the embedded library.
fn is_stripped() -> bool {
    println!("cargo::rerun-if-env-changed=PAGEWISE_STRIP_LIBRARY");
    env::var_os("PAGEWISE_STRIP_LIBRARY").is_some()
}

/// The flags in cargo's form, with names in place of this machine's folders.
fn flags(root: &Path, folder: &Path, target: &Target) -> String {
    let mut flags = vec![renamed(root, ".")];
    flags.extend(cargo_home().map(|home| renamed(&home, "/cargo")));
    flags.extend(target.flags.iter().cloned());
    flags.push(renamed(folder, "."));
    flags.join("\u{1f}")
}

/// The folder in which cargo unpacks fetched crates.
fn cargo_home() -> Option<PathBuf> {
    let beside_home = || Some(PathBuf::from(env::var_os("HOME")?).join(".cargo"));
    let named = env::var_os("CARGO_HOME").map(PathBuf::from);
    named.or_else(beside_home)
}

fn is_outer(variable: &str) -> bool {
    let families = [
        "CARGO_CFG_",
        "CARGO_FEATURE_",
        "CARGO_PKG_",
        "CARGO_PROFILE_",
        "DEP_",
    ];
    let single = [
        "CARGO_MAKEFLAGS",
        "RUSTFLAGS",
        "CARGO_BUILD_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "CARGO_TARGET_DIR",
        "RUSTC_WORKSPACE_WRAPPER",
    ];
    families.iter().any(|family| variable.starts_with(family)) || single.contains(&variable)
}

/// Arguments for linking, with what the linker finds in place of a libc in `folder`. A library for musl
/// depends on none, since the program has already loaded one: so any compiler can link it, including one
/// for glibc.
fn libc_outside(folder: &Path, target: &Target) -> Vec<OsString> {
    let is_musl = target.name.ends_with("musl");
    if !is_musl && !target.is_portable {
        return Vec::new();
    }
    fs::create_dir_all(folder).expect("OUT_DIR is writable");
    let mut place = OsString::from("native=");
    place.push(folder);
    let mut arguments: Vec<OsString> = vec!["--".into(), "-L".into(), place];
    if is_musl {
        fs::write(folder.join("libc.so"), "GROUP ( )\n").expect("OUT_DIR is writable");
        arguments.push("-Clink-arg=-nostdlib".into());
        return arguments;
    }
    match old_glibc::replace_libc(folder, target) {
        Ok(others) => arguments.extend(others.into_iter().map(OsString::from)),
        Err(why) => println!(
            "cargo::warning=`pagewise run` of this build pages programs of this machine's glibc and \
             newer ones alone: {}",
            why.replace('\n', " ")
        ),
    }
    arguments
}
