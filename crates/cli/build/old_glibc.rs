//! Links the library so that it works with older glibcs than the build machine's.
//!
//! A linker takes the newest version of each symbol that it finds, so a library made on Debian 12
//! would not load on Debian 11. Here it finds, in place of glibc, an empty library with the same
//! symbols in their versions of [`NEWEST`] or before.

use crate::settings::Target;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The glibc that the library needs, of 2012: older than any system with a kernel that Pagewise knows.
const NEWEST: Version = Version(2, 17);

/// Parts of glibc that were one with `libc.so.6` from 2.34 on; as libraries they exist in all.
const PARTS: [&str; 3] = ["libc.so.6", "libdl.so.2", "libpthread.so.0"];

/// What has no version that old, and what takes its place: a jump to the function that old headers
/// named (`_STAT_VER` is 1 on x86-64). Hidden, so that it does not take the place of the program's.
const REPLACED: &str = "
        .globl fstat64
        .hidden fstat64
        .type fstat64, @function
fstat64:
        mov %rsi, %rdx
        mov %edi, %esi
        mov $1, %edi
        jmp __fxstat64@PLT
        .section .note.GNU-stack,\"\",@progbits
";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32);

impl Version {
    /// From `2.3.4` or `2.17`; the third number does not matter for the order here.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(str::parse);
        Some(Self(numbers.next()?.ok()?, numbers.next()?.ok()?))
    }
}

/// Writes `libc.so` into `folder`, which the linker searches first, and returns arguments for it.
///
/// # Errors
/// What this machine lacks.
pub fn replace_libc(folder: &Path, target: &Target) -> Result<Vec<String>, String> {
    let compilers = target.compilers();
    let compiler = compilers
        .iter()
        .find(|compiler| compiler.file("libc.so.6").is_some())
        .ok_or("no C compiler knows where libc.so.6 is")?;
    let file = |name| {
        compiler
            .file(name)
            .ok_or_else(|| format!("there is no {name}"))
    };
    let parts: Vec<PathBuf> = PARTS
        .iter()
        .map(|name| file(name))
        .collect::<Result<_, _>>()?;
    let symbols = symbols(&parts)?;
    let (empty, replaced) = (folder.join("libc.so.6"), folder.join("replaced.o"));
    let script = write(folder, "versions", &version_script(&symbols))?;
    let source = write(folder, "empty.s", &assembly(&symbols))?;
    run(compiler
        .command()
        .args(["-shared", "-nostdlib", "-Wl,-soname,libc.so.6", "-o"])
        .arg(&empty)
        .arg(format!("-Wl,--version-script={}", script.display()))
        .arg(source))?;
    let source = write(folder, "replaced.s", REPLACED)?;
    run(compiler
        .command()
        .args(["-c", "-o"])
        .arg(&replaced)
        .arg(source))?;
    // First what glibc itself links statically (atexit, pthread_atfork).
    let group = format!(
        "GROUP ( {} {} {} AS_NEEDED ( {} ) )\n",
        file("libc_nonshared.a")?.display(),
        replaced.display(),
        empty.display(),
        file("ld-linux-x86-64.so.2")?.display()
    );
    write(folder, "libc.so", &group)?;
    // Before 2.34 dlsym(3) and the threads' functions were there.
    Ok([
        "-Wl,--no-as-needed",
        "-l:libdl.so.2",
        "-l:libpthread.so.0",
        "-Wl,--as-needed",
    ]
    .map(|argument| format!("-Clink-arg={argument}"))
    .into())
}

/// The symbols of these libraries, each with its newest version that is old enough.
fn symbols(libraries: &[PathBuf]) -> Result<BTreeMap<String, String>, String> {
    let mut found: BTreeMap<String, (Version, String)> = BTreeMap::new();
    for library in libraries {
        let mut nm = Command::new("nm");
        let listed = nm.args(["-D", "--defined-only"]).arg(library).output();
        let listed = listed.map_err(|error| format!("nm: {error}"))?;
        for line in String::from_utf8_lossy(&listed.stdout).lines() {
            let Some((name, version)) = versioned(line) else {
                continue;
            };
            let Some(number) = version.strip_prefix("GLIBC_").and_then(Version::parse) else {
                continue;
            };
            let known = found.get(name).map(|(known, _)| *known);
            if number <= NEWEST && known.is_none_or(|known| known <= number) {
                found.insert(name.to_owned(), (number, version.to_owned()));
            }
        }
    }
    match found.contains_key("dlsym") && found.contains_key("malloc") {
        true => Ok(found
            .into_iter()
            .map(|(name, (_, version))| (name, version))
            .collect()),
        false => Err("nm finds no dlsym and malloc in glibc".to_owned()),
    }
}

/// Name and version of a function or variable in a line of nm: `00012340 T dlsym@@GLIBC_2.34`.
fn versioned(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace().skip(1);
    let (kind, symbol) = (words.next()?, words.next()?);
    let (name, version) = symbol.split_once('@')?;
    let is_addressed = ["T", "W", "i", "D", "B", "R", "V"].contains(&kind);
    is_addressed.then(|| (name, version.trim_start_matches('@')))
}

fn version_script(symbols: &BTreeMap<String, String>) -> String {
    let mut by_version: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, version) in symbols {
        by_version.entry(version).or_default().push(name);
    }
    let mut script = String::new();
    for (version, names) in by_version {
        writeln!(script, "{version} {{ {}; }};", names.join("; ")).expect("a string takes it");
    }
    script
}

/// Defines each symbol, at one place; nothing of it is ever loaded.
fn assembly(symbols: &BTreeMap<String, String>) -> String {
    let mut text = ".data\n".to_owned();
    for name in symbols.keys() {
        writeln!(
            text,
            ".globl {name}\n.type {name}, @object\n.size {name}, 8\n{name}:"
        )
        .expect("a string takes it");
    }
    text + ".quad 0\n.section .note.GNU-stack,\"\",@progbits\n"
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
