//! Facts about each command beyond its options: files, environment variables, exit status.

/// A file or a variable, and the commands that use it.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Its purpose.
    pub text: &'static str,
    /// Commands, as typed after `pagewise`; all commands if empty.
    commands: &'static [&'static str],
}

/// Commands that name addresses.
const NAMING: &[&str] = &["doctor", "report", "diff", "gate", "watch"];
/// Commands that load our library into a program.
const PAGING: &[&str] = &["run", "doctor", "bench faults"];
/// Commands that change the machine temporarily.
const CHANGING: &[&str] = &["trace", "huge balance", "doctor"];

const FILES: &[Entry] = &[
    Entry {
        name: "pagewise-report.html",
        text: "The report of doctor, unless -o names another file.",
        commands: &["doctor"],
    },
    Entry {
        name: "perf.data",
        text: "The recording, unless -o names another file.",
        commands: &["record"],
    },
    Entry {
        name: "trace.txt, trace.perf.data",
        text: "The trace, and what is recorded if the kernel cannot trace; -o names another file.",
        commands: &["trace"],
    },
    Entry {
        name: "FILE.old",
        text: "What a new recording or trace has replaced.",
        commands: &["record", "trace"],
    },
    Entry {
        name: "pagewise.pwm",
        text: "The memory trace, unless -o names another file.",
        commands: &["huge trace"],
    },
    Entry {
        name: "~/.cache/pagewise/libpagewise_pager-*.so",
        text: "The pager's library, which programs load; kept for the next run. If it cannot be there: $TMPDIR/pagewise-UID.",
        commands: PAGING,
    },
    Entry {
        name: "~/.cache/pagewise/libpagewise_sampler-*.so",
        text: "The library that samples allocations; kept for the next run like the pager's.",
        commands: &["memory"],
    },
    Entry {
        name: "~/.cache/pagewise/memory_trace-*.so",
        text: "QEMU's plugin, built for the installed QEMU.",
        commands: &["huge trace"],
    },
    Entry {
        name: "~/.cache/pagewise/watch-PID.out",
        text: "What a watched program prints, unless --command-output names another file.",
        commands: &["watch"],
    },
    Entry {
        name: "/var/tmp",
        text: "What does not fit into memory, in a file without a name, unless --store names another place.",
        commands: &["run"],
    },
    Entry {
        name: "/run/pagewise, $XDG_RUNTIME_DIR/pagewise",
        text: "Journals of temporary changes, for root and for other users: the next pagewise restores from them what a killed one left behind.",
        commands: CHANGING,
    },
    Entry {
        name: "~/.debug, ~/.cache/debuginfod_client, /tmp/perf-PID.map",
        text: "Programs and libraries by build id, as perf and debuginfod keep them, and names of code generated at run time: read to name functions.",
        commands: NAMING,
    },
];

const ENVIRONMENT: &[Entry] = &[
    Entry {
        name: "NO_COLOR, CLICOLOR, TERM",
        text: "No colours if NO_COLOR is not empty, CLICOLOR is 0, or TERM is dumb; --color decides before them.",
        commands: &[],
    },
    Entry {
        name: "COLUMNS",
        text: "Width of text in a file or a pipe, in columns; 100 if not set.",
        commands: &[],
    },
    Entry {
        name: "LC_ALL, LC_CTYPE, LANG",
        text: "ASCII only if the first of these that is set names a locale without UTF-8, such as C.",
        commands: &[],
    },
    Entry {
        name: "TMPDIR",
        text: "Folder for temporary files: recordings that are not kept, inputs that are unpacked; /tmp if not set.",
        commands: &[],
    },
    Entry {
        name: "XDG_CACHE_HOME, HOME",
        text: "The cache is in XDG_CACHE_HOME instead of ~/.cache.",
        commands: &[
            "run",
            "doctor",
            "bench faults",
            "huge trace",
            "watch",
            "report",
            "diff",
            "gate",
        ],
    },
    Entry {
        name: "XDG_RUNTIME_DIR, XDG_STATE_HOME",
        text: "Where journals are kept; those of traces are in XDG_STATE_HOME (otherwise ~/.local/state) if XDG_RUNTIME_DIR is not set.",
        commands: CHANGING,
    },
    Entry {
        name: "PERF_BUILDID_DIR, PERF_CONFIG",
        text: "perf's store of programs by build id, and its configuration file, which may name one.",
        commands: NAMING,
    },
    Entry {
        name: "DEBUGINFOD_URLS, DEBUGINFOD_CACHE_PATH",
        text: "Servers to ask for programs by build id (with debuginfod-find), and where their answers are kept. No server is asked if DEBUGINFOD_URLS is not set.",
        commands: NAMING,
    },
    Entry {
        name: "DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME, DEBUGINFOD_MAXSIZE",
        text: "Limits of debuginfod-find; if not set, tighter than its own defaults.",
        commands: NAMING,
    },
    Entry {
        name: "PATH",
        text: "Where programs are searched for.",
        commands: &[],
    },
    Entry {
        name: "PAGEWISE_FILES",
        text: "For a program with Pagewise's library in LD_PRELOAD: how files that it maps are read (random, \
               sequential, will-need or populate). doctor advises it.",
        commands: &["run", "doctor"],
    },
    Entry {
        name: "PAGEWISE_POPULATE",
        text: "For a program with Pagewise's library in LD_PRELOAD: off takes MAP_POPULATE out of its calls of mmap. \
               doctor advises it.",
        commands: &["run", "doctor"],
    },
    Entry {
        name: "PAGEWISE_PORT",
        text: "The port that the server listens on; doctor sets it for the command of --load.",
        commands: &["doctor"],
    },
    Entry {
        name: "PAGEWISE_PUSH_TOKEN",
        text: "The token for the server of report --push; USER:TOKEN is sent as basic authentication.",
        commands: &["report"],
    },
    Entry {
        name: "PAGEWISE_SAMPLER_LIBRARY",
        text: "Another build of the library that samples allocations.",
        commands: &["memory"],
    },
    Entry {
        name: "PAGEWISE_PAGER_LIBRARY",
        text: "Another build of the pager's library.",
        commands: PAGING,
    },
];

/// Commands whose exit status is that of the program they run.
const RUNNING: &[&str] = &[
    "doctor",
    "record",
    "trace",
    "watch",
    "run",
    "huge balance",
    "huge trace",
];

/// Command-specific statuses, which come before the common ones.
const OWN_STATUS: &[(&str, &str, &str)] = &[
    ("gate", "1", "Something grew beyond what is allowed."),
    ("diff", "1", "A condition of --fail-if holds."),
    (
        "run",
        "1",
        "With --strict: too much memory outside the budget, and the program did not fail by itself.",
    ),
    (
        "trace",
        "1",
        "With --restore: not everything could be restored.",
    ),
    (
        "huge balance",
        "1",
        "With --undo: not everything could be restored.",
    ),
];

/// Files that `command` reads or writes without being told to.
pub fn files(command: &str) -> impl Iterator<Item = &'static Entry> {
    FILES.iter().filter(move |entry| entry.is_of(command))
}

/// Variables that `command` reads.
pub fn environment(command: &str) -> impl Iterator<Item = &'static Entry> {
    ENVIRONMENT.iter().filter(move |entry| entry.is_of(command))
}

/// Exit statuses of `command`, and when they occur.
pub fn statuses(command: &str) -> Vec<(&'static str, &'static str)> {
    let mut all = Vec::new();
    if RUNNING.contains(&command) {
        all.extend([
            ("N", "The status of the program that ran."),
            ("128+N", "Signal N killed it."),
            ("126, 127", "It cannot be executed, or was not found."),
            (
                "0",
                "There was no program, it is still running, or pagewise terminated it when its time was up.",
            ),
        ]);
    } else {
        all.push(("0", "Success."));
    }
    let own = OWN_STATUS.iter().filter(|(of, ..)| *of == command);
    all.extend(own.map(|&(_, status, when)| (status, when)));
    match command {
        "gate" => all.push((
            "2",
            "Nothing could be compared, or the command line is wrong.",
        )),
        _ => all.extend([
            ("1", "It failed; standard error says why."),
            ("2", "The command line is wrong."),
        ]),
    }
    all
}

impl Entry {
    /// Whether a command uses it; the program as a whole (``) uses all.
    fn is_of(&self, command: &str) -> bool {
        self.commands.is_empty() || command.is_empty() || self.commands.contains(&command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Set by the command line for the pager, or only by tests.
    const INTERNAL: [&str; 5] = [
        "PAGEWISE_PAGER",
        "PAGEWISE_PAGER_WITHOUT",
        "PAGEWISE_STORE_FAULTS",
        "PAGEWISE_TEST_MACHINE",
        "PAGEWISE_TEST_PROGRESS",
    ];
    /// How the sources read a variable: functions of std, and closures around them.
    const READ: [&str; 5] = ["var(", "var_os(", "variable(", "set(", "folder("];

    /// All sources of crates, except this file.
    fn sources() -> Vec<String> {
        fn add(folder: &Path, all: &mut Vec<String>) {
            for entry in fs::read_dir(folder).expect("a folder of sources") {
                let path: PathBuf = entry.expect("its entry").path();
                let name = path.file_name().unwrap_or_default();
                match path.is_dir() {
                    true => add(&path, all),
                    false if name == "facts.rs" => {}
                    false if path.extension().is_some_and(|ending| ending == "rs") => {
                        all.push(fs::read_to_string(&path).expect("a source"));
                    }
                    false => {}
                }
            }
        }
        let mut all = Vec::new();
        for name in ["cli", "linux", "operate", "pager", "policy", "report"] {
            let source = format!("{}/../{name}/src", env!("CARGO_MANIFEST_DIR"));
            add(Path::new(&source), &mut all);
        }
        all
    }

    /// The name of a variable in quotes at the start of a text.
    fn quoted(text: &str) -> Option<&str> {
        let (name, _) = text.trim_start().strip_prefix('"')?.split_once('"')?;
        let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
        (name.len() > 1 && name.chars().all(is_name)).then_some(name)
    }

    #[test]
    fn each_variable_that_the_sources_read_is_told_and_no_other() {
        let sources = sources();
        let mut read = BTreeSet::new();
        for source in &sources {
            for call in READ {
                let after = source.split(call).skip(1);
                read.extend(after.filter_map(quoted));
            }
            let ours = source.match_indices("\"PAGEWISE_");
            read.extend(ours.filter_map(|(at, _)| quoted(&source[at..])));
        }
        let message: BTreeSet<&str> = environment("")
            .flat_map(|entry| entry.name.split(", "))
            .collect();
        let untold: Vec<&&str> = read
            .iter()
            .filter(|name| !message.contains(**name) && !INTERNAL.contains(name))
            .collect();
        assert!(untold.is_empty(), "{untold:?} are not in the manual");
        for name in message.iter().filter(|name| **name != "TMPDIR") {
            let literal = format!("\"{name}\"");
            let is_read = sources.iter().any(|source| source.contains(&literal));
            assert!(is_read, "{name}: no source reads it");
        }
        assert!(sources.iter().any(|source| source.contains("temp_dir()")));
    }

    #[test]
    fn a_command_tells_its_own() {
        let names = |entries: Vec<&Entry>| -> Vec<&str> {
            entries.iter().map(|entry| entry.name).collect()
        };
        assert_eq!(names(files("record").collect()), ["perf.data", "FILE.old"]);
        assert!(names(environment("run").collect()).contains(&"PAGEWISE_PAGER_LIBRARY"));
        assert!(!names(environment("check").collect()).contains(&"PAGEWISE_PAGER_LIBRARY"));
        assert_eq!(statuses("check")[0].0, "0");
        assert_eq!(statuses("doctor")[0].0, "N");
        assert_eq!(statuses("gate").last().map(|one| one.0), Some("2"));
    }
}
