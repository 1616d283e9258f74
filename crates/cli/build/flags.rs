//! Flags of the outer build that apply to the library, and names for folders in it.

use std::path::Path;

/// The outer flags that select the processor, the linker and the names of folders. Flags that
/// instrument, warn or make a program static do not suit a library that is preloaded into other
/// programs.
pub fn for_library<'a>(given: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut given = given.peekable();
    while let Some(flag) = given.next() {
        let (name, value) = match flag {
            "-C" | "--codegen" => ("-C", given.next()),
            "--remap-path-prefix" | "-L" | "--sysroot" => (flag, given.next()),
            _ => attached(flag),
        };
        let Some(value) = value else { continue };
        match name {
            "-C" => kept.extend(codegen(value).map(|value| format!("-C{value}"))),
            "-L" => kept.push(format!("-L{value}")),
            _ => kept.push(format!("{name}={value}")),
        }
    }
    kept
}

/// The flags that also apply to another target on the same processor: all except those for linking.
pub fn without_linking(flags: Vec<String>) -> Vec<String> {
    let linking = |flag: &String| {
        ["-Clinker", "-Clink-", "-L"]
            .iter()
            .any(|kind| flag.starts_with(kind))
    };
    flags.into_iter().filter(|flag| !linking(flag)).collect()
}

/// Replaces a folder by a name in the build's output, so that builds in other folders are
/// identical. If two apply to one path, the later one is used.
pub fn renamed(folder: &Path, name: &str) -> String {
    format!("--remap-path-prefix={}={name}", folder.display())
}

/// A flag written as one word; no value if it is not one of ours.
fn attached(flag: &str) -> (&str, Option<&str>) {
    let prefixes = [
        ("-C", "-C"),
        ("--codegen=", "-C"),
        ("-L", "-L"),
        ("--remap-path-prefix=", "--remap-path-prefix"),
        ("--sysroot=", "--sysroot"),
    ];
    prefixes
        .into_iter()
        .find_map(|(prefix, name)| Some((name, Some(flag.strip_prefix(prefix)?))))
        .unwrap_or((flag, None))
}

/// The `-C` option, if it applies to the library.
fn codegen(option: &str) -> Option<String> {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    match name {
        "linker"
        | "linker-flavor"
        | "link-self-contained"
        | "target-cpu"
        | "relro-level"
        | "force-frame-pointers" => Some(option.to_owned()),
        "link-arg" | "link-args" => {
            let whole = ["-static", "-static-pie", "-pie", "-no-pie"];
            let words: Vec<&str> = value
                .split(' ')
                .filter(|word| !whole.contains(word))
                .collect();
            (!words.is_empty()).then(|| format!("{name}={}", words.join(" ")))
        }
        "target-feature" => {
            let features: Vec<&str> = value
                .split(',')
                .filter(|one| !one.ends_with("crt-static"))
                .collect();
            (!features.is_empty()).then(|| format!("{name}={}", features.join(",")))
        }
        _ => None,
    }
}
