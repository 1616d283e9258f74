//! Which of the outer build's flags hold for the library, and how folders are called in it.

use std::path::Path;

/// Those of the outer flags that say for which processor, with which linker and under which names of
/// folders. What instruments, warns or makes a program static is not for a library that is preloaded
/// into others.
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

/// Of these flags those that hold for another target on the same processor: none that say how to link.
pub fn without_linking(flags: Vec<String>) -> Vec<String> {
    let linking = |flag: &String| {
        ["-Clinker", "-Clink-", "-L"]
            .iter()
            .any(|kind| flag.starts_with(kind))
    };
    flags.into_iter().filter(|flag| !linking(flag)).collect()
}

/// Has each folder called by its name in what is built, so that builds in other folders are the same.
/// Of two that hold for one path the later counts.
pub fn renamed(folder: &Path, name: &str) -> String {
    format!("--remap-path-prefix={}={name}", folder.display())
}

/// A flag written as one word; no value where it is none of ours.
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

/// What of `-C` holds for the library.
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
