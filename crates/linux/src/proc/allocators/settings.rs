//! Settings that were in force when a program started, from its environment and arguments.

use pagewise_model::allocator::{Allocator, AllocatorKind};
use std::collections::BTreeMap;

/// Settings of an allocator, by environment variable, tunable or flag.
pub(super) fn settings_of(
    allocator: &Allocator,
    environ: &[(String, String)],
    arguments: &[String],
) -> BTreeMap<String, String> {
    let kind = allocator.kind;
    let mut settings = BTreeMap::new();
    for (name, value) in environ {
        if kind == AllocatorKind::Glibc && name == "GLIBC_TUNABLES" {
            settings.extend(tunables(value));
        } else if concerns(allocator, name) {
            settings.insert(name.clone(), value.clone());
            settings.extend(value.split_whitespace().filter_map(|word| flag(kind, word)));
        }
    }
    settings.extend(arguments.iter().filter_map(|word| flag(kind, word)));
    settings
}

/// glibc up to 2.38 ends each tunable with NUL where the list is (elf/dl-tunables.c, parse_tunables):
/// those after the first look like variables.
fn concerns(allocator: &Allocator, name: &str) -> bool {
    match &allocator.variable {
        Some(variable) => name == variable,
        None => pagewise_families::family(allocator.kind).is_some_and(|family| family.reads(name)),
    }
}

/// `glibc.malloc.arena_max=1:glibc.malloc.trim_threshold=0x1000`
fn tunables(value: &str) -> impl Iterator<Item = (String, String)> {
    value.split(':').filter_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.starts_with("glibc.")
            .then(|| (name.to_string(), value.to_string()))
    })
}

/// Heap flags of the JVM (`-Xmx4g`, `-XX:+AlwaysPreTouch`) and of V8 (`--max-old-space-size=4096`).
fn flag(kind: AllocatorKind, word: &str) -> Option<(String, String)> {
    let heap_flag = match kind {
        AllocatorKind::Jvm => ["-XX:", "-Xmx", "-Xms", "-Xmn"]
            .iter()
            .any(|prefix| word.starts_with(prefix)),
        AllocatorKind::V8 => {
            let name = word.trim_start_matches('-').replace('_', "-");
            word.starts_with("--")
                && ["max-old-space", "max-semi-space", "max-heap"]
                    .iter()
                    .any(|prefix| name.starts_with(prefix))
        }
        _ => false,
    };
    let at_number = word.len().min(4);
    heap_flag.then(|| match word.split_once('=') {
        Some((name, value)) => (name.to_string(), value.to_string()),
        None if word.starts_with("-Xm") => {
            (word[..at_number].to_string(), word[at_number..].to_string())
        }
        None => (word.to_string(), String::new()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: AllocatorKind, environ: &[(&str, &str)], words: &[&str]) -> Vec<String> {
        let environ: Vec<_> = environ
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        let words: Vec<_> = words.iter().map(|word| word.to_string()).collect();
        let allocator = Allocator {
            kind,
            ..Allocator::default()
        };
        settings_of(&allocator, &environ, &words)
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    }

    #[test]
    fn each_family_gets_only_its_own() {
        let environ = [
            (
                "GLIBC_TUNABLES",
                "glibc.malloc.trim_threshold=1:glibc.cpu.x=2:glibc.mem.tagging=3",
            ),
            ("glibc.malloc.perturb", "85"),
            ("MALLOC_TOP_PAD_", "1048576"),
            ("MALLOC_ARENA_MAX", "2"),
            ("MALLOC_CONF", "dirty_decay_ms:-1"),
            ("MIMALLOC_PURGE_DELAY", "-1"),
            ("GOGC", "200"),
            ("HOME", "/root"),
        ];
        assert_eq!(
            read(AllocatorKind::Glibc, &environ, &[]),
            [
                "MALLOC_ARENA_MAX=2",
                "MALLOC_TOP_PAD_=1048576",
                "glibc.cpu.x=2",
                "glibc.malloc.perturb=85",
                "glibc.malloc.trim_threshold=1",
                "glibc.mem.tagging=3"
            ]
        );
        assert_eq!(
            read(AllocatorKind::Jemalloc, &environ, &[]),
            ["MALLOC_CONF=dirty_decay_ms:-1"]
        );
        assert_eq!(
            read(AllocatorKind::Mimalloc, &environ, &[]),
            ["MIMALLOC_PURGE_DELAY=-1"]
        );
        assert_eq!(read(AllocatorKind::Go, &environ, &[]), ["GOGC=200"]);
        assert!(read(AllocatorKind::Musl, &environ, &[]).is_empty());
    }

    #[test]
    fn a_build_with_a_prefix_reads_its_own_variable_only() {
        let allocator = Allocator {
            kind: AllocatorKind::Jemalloc,
            variable: Some("_RJEM_MALLOC_CONF".to_owned()),
            ..Allocator::default()
        };
        let environ = ["MALLOC_CONF", "_RJEM_MALLOC_CONF"]
            .map(|name| (name.to_owned(), "narenas:1".to_owned()));
        let found = settings_of(&allocator, &environ, &[]);
        assert_eq!(found.into_keys().collect::<Vec<_>>(), ["_RJEM_MALLOC_CONF"]);
    }

    #[test]
    fn runtimes_take_flags_too() {
        let words = [
            "java",
            "-Xmx4g",
            "-XX:+AlwaysPreTouch",
            "-XX:NewRatio=2",
            "-jar",
            "x",
        ];
        assert_eq!(
            read(AllocatorKind::Jvm, &[], &words),
            ["-XX:+AlwaysPreTouch=", "-XX:NewRatio=2", "-Xmx=4g"]
        );
        let environ = [("JAVA_TOOL_OPTIONS", "-Xms1g -Dx=y")];
        assert_eq!(
            read(AllocatorKind::Jvm, &environ, &["java", "x"]),
            ["-Xms=1g", "JAVA_TOOL_OPTIONS=-Xms1g -Dx=y"]
        );
        let words = ["node", "--max_old_space_size=4096", "x.js"];
        assert_eq!(
            read(AllocatorKind::V8, &[], &words),
            ["--max_old_space_size=4096"]
        );
    }
}
