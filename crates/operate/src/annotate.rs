//! The samples of one function by line of its source and by instruction.

use crate::analysis::Files;
use anyhow::{Result, bail};
use pagewise_formats::perf_data::PerfData;
use pagewise_linux::symbols::{CodeLine, CodePlace};
use pagewise_model::annotated::{Annotated, AnnotatedEvent, AnnotatedInstruction, AnnotatedLine};
use pagewise_model::event::CpuMode;
use pagewise_model::event::{
    Callchain, Event, EventKind, PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER, Sample,
};
use pagewise_model::stack::{FrameKey, StackId, StackTable};
use pagewise_model::symbol::{Name, NamedList};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

/// Most bytes of a source file that is shown.
const MOST_SOURCE: u64 = 8 << 20;
/// Names of files that hold source. Debug information may name any file, and what is in others is nobody's
/// business.
const SOURCES: [&str; 24] = [
    "c", "cc", "cpp", "cxx", "c++", "h", "hh", "hpp", "hxx", "inl", "ipp", "tcc", "rs", "go",
    "zig", "d", "f", "f90", "f95", "swift", "nim", "s", "S", "adb",
];

/// Weights of stacks' samples, or their numbers, by stack and event.
type Sums = HashMap<StackId, Vec<u64>>;

/// The samples of a function. `done` receives the offset below which the file is no longer needed.
///
/// # Errors
/// If no sample has a function of that name.
pub fn annotate(data: &PerfData<'_>, function: &str, done: impl FnMut(usize)) -> Result<Annotated> {
    let mut files = Files::new(data);
    let (events, of_source) = events(data);
    let mut stacks = StackTable::default();
    let (mut weights, mut samples) = (Sums::new(), Sums::new());
    let mut words: Vec<u8> = Vec::new();
    data.read(
        |event| {
            let unwound = files.follow(&event);
            let Event::Sample(sample) = event else {
                return;
            };
            let Some(&Some(event)) = of_source.get(usize::from(sample.source.0)) else {
                return;
            };
            chain(&sample, unwound.as_deref(), &mut words);
            let stack = stacks.intern(sample.pid, Callchain::from_le_bytes(&words));
            for (sums, by) in [(&mut weights, sample.period.max(1)), (&mut samples, 1)] {
                let none = || vec![0; events.len()];
                let sum = &mut sums.entry(stack).or_insert_with(none)[event];
                *sum = sum.saturating_add(by);
            }
        },
        done,
    );
    let keys = stacks.keys().to_vec();
    let named = files.names(&keys);
    let found = Found::new(function, &keys, &named)?;
    let wanted: Vec<FrameKey> = found.keys.keys().copied().collect();
    let places: HashMap<FrameKey, CodePlace> =
        wanted.iter().copied().zip(files.places(&wanted)).collect();
    Ok(found.sums(&events, &stacks, (&weights, &samples), &places))
}

/// Names of events, each once, and the event of each source.
fn events(data: &PerfData<'_>) -> (Vec<String>, Vec<Option<usize>>) {
    let mut names: Vec<String> = Vec::new();
    let of_source = data.sources().iter().map(|source| {
        if source.kind == EventKind::Dummy {
            return None;
        }
        let known = names.iter().position(|name| *name == source.name);
        Some(known.unwrap_or_else(|| {
            names.push(source.name.clone());
            names.len() - 1
        }))
    });
    let of_source = of_source.collect();
    (names, of_source)
}

/// The chain of a sample as the kernel writes it, with the user's part as it was unwound.
fn chain(sample: &Sample<'_>, unwound: Option<&[u64]>, words: &mut Vec<u8>) {
    words.clear();
    let mut push = |word: u64| words.extend_from_slice(&word.to_le_bytes());
    let marker = |mode: CpuMode| match mode {
        CpuMode::Kernel => PERF_CONTEXT_KERNEL,
        _ => PERF_CONTEXT_USER,
    };
    let mut mode = None;
    let is_kept = |of: CpuMode| unwound.is_none() || of == CpuMode::Kernel;
    for (of, address) in sample.callchain.frames().filter(|&(of, _)| is_kept(of)) {
        if mode.replace(of) != Some(of) {
            push(marker(of));
        }
        push(address);
    }
    match unwound {
        Some(unwound) => {
            push(PERF_CONTEXT_USER);
            unwound.iter().for_each(|&address| push(address));
        }
        None if mode.is_none() => {
            push(marker(sample.mode));
            push(sample.ip);
        }
        None => {}
    }
}

/// Where a function is.
struct Found {
    function: String,
    module: String,
    /// Its addresses, and how many inlined functions are below it there.
    keys: BTreeMap<FrameKey, usize>,
}

impl Found {
    fn new(function: &str, keys: &[FrameKey], named: &NamedList) -> Result<Self> {
        let mut found = Self {
            function: function.to_owned(),
            module: String::new(),
            keys: BTreeMap::new(),
        };
        let mut similar = BTreeSet::new();
        for (key, &id) in keys.iter().zip(&named.of) {
            let Some(Name::Known { functions, module }) = named.names.all().get(id.index()) else {
                continue;
            };
            if let Some(depth) = functions.iter().position(|name| name == function) {
                found.module.clone_from(module);
                found.keys.insert(*key, depth);
            } else {
                similar.extend(
                    functions
                        .iter()
                        .filter(|name| name.contains(function))
                        .cloned(),
                );
            }
        }
        match (found.keys.is_empty(), similar.is_empty()) {
            (false, _) => Ok(found),
            (true, true) => bail!("no sample has a function named {function}"),
            (true, false) => {
                let mut similar: Vec<String> = similar.into_iter().collect();
                similar.sort_by_key(String::len);
                similar.truncate(5);
                bail!(
                    "no sample has a function named {function}; there are: {}",
                    similar.join(", ")
                )
            }
        }
    }

    fn sums(
        self,
        events: &[String],
        stacks: &StackTable,
        (weights, samples): (&Sums, &Sums),
        places: &HashMap<FrameKey, CodePlace>,
    ) -> Annotated {
        let none = || vec![0_u64; events.len()];
        let mut lines: BTreeMap<Option<CodeLine>, AnnotatedLine> = BTreeMap::new();
        let mut instructions: BTreeMap<u64, AnnotatedInstruction> = BTreeMap::new();
        let (mut all, mut own, mut whole, mut seen) = (none(), none(), none(), none());
        for (&stack, weights) in weights {
            add(&mut all, weights);
            // A recursive function is on a stack once, and each of its lines.
            let mut met: BTreeSet<Option<CodeLine>> = BTreeSet::new();
            for (depth, key) in stacks.frames(stack).enumerate() {
                let Some(&inlined) = self.keys.get(&key) else {
                    continue;
                };
                let place = places.get(&key);
                let line = place.and_then(|place| place.lines.get(inlined).cloned().flatten());
                let sums = lines.entry(line.clone()).or_insert_with(|| AnnotatedLine {
                    own: none(),
                    with_callees: none(),
                    ..AnnotatedLine::default()
                });
                if met.insert(line.clone()) {
                    add(&mut sums.with_callees, weights);
                }
                if depth == 0 && inlined == 0 {
                    add(&mut sums.own, weights);
                    add(&mut own, weights);
                    let into = place.map_or(0, |place| place.into);
                    let at = instructions
                        .entry(into)
                        .or_insert_with(|| AnnotatedInstruction {
                            into,
                            place: line.map(|line| (line.file, line.line)),
                            own: none(),
                        });
                    add(&mut at.own, weights);
                }
            }
            if !met.is_empty() {
                add(&mut whole, weights);
                add(&mut seen, &samples[&stack]);
            }
        }
        let has_lines = lines.keys().any(Option::is_some);
        let mut lines: Vec<AnnotatedLine> = lines
            .into_iter()
            .map(|(line, sums)| AnnotatedLine {
                place: line.map(|line| (line.file, line.line)),
                ..sums
            })
            .collect();
        read_texts(&mut lines);
        let events = events.iter().enumerate().map(|(at, name)| AnnotatedEvent {
            name: name.clone(),
            all: all[at],
            own: own[at],
            with_callees: whole[at],
            samples: seen[at],
        });
        Annotated {
            missing: (!has_lines).then(|| {
                format!(
                    "{} has no lines for it: compile it with -g, or install its debug symbols (DEBUGINFOD_URLS \
                     is not asked for lines)",
                    if self.module.is_empty() { "its file" } else { &self.module }
                )
            }),
            function: self.function,
            module: self.module,
            events: events.collect(),
            lines,
            instructions: instructions.into_values().collect(),
        }
    }
}

fn add(sums: &mut [u64], weights: &[u64]) {
    for (sum, weight) in sums.iter_mut().zip(weights) {
        *sum = sum.saturating_add(*weight);
    }
}

/// Adds the texts of lines whose files are there.
fn read_texts(lines: &mut [AnnotatedLine]) {
    let mut known: HashMap<String, Option<Vec<String>>> = HashMap::new();
    for line in lines {
        let Some((file, number)) = &line.place else {
            continue;
        };
        let texts = known.entry(file.clone()).or_insert_with(|| source(file));
        let at = usize::try_from(*number).unwrap_or(0).checked_sub(1);
        line.text = texts
            .as_ref()
            .zip(at)
            .and_then(|(texts, at)| texts.get(at).cloned());
    }
}

/// The lines of a source file: a regular one with a name of source files, and of their size.
fn source(file: &str) -> Option<Vec<String>> {
    let (_, ending) = file.rsplit_once('.')?;
    if !file.starts_with('/') || !SOURCES.contains(&ending) {
        return None;
    }
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(file)
        .ok()?;
    if !opened.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    opened.take(MOST_SOURCE).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_source_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("a.c"), "int a;\nint b;\n").unwrap();
        std::fs::write(path("shadow"), "secret\n").unwrap();
        std::os::unix::fs::symlink(path("shadow"), path("link.c")).unwrap();
        let fifo = path("fifo.c");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&fifo)
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(
            source(&path("a.c")),
            Some(vec!["int a;".to_owned(), "int b;".to_owned()])
        );
        for other in ["shadow", "link.c", "fifo.c", "absent.c"] {
            assert_eq!(source(&path(other)), None, "{other}");
        }
        assert_eq!((source("/dev/zero"), source("a.c")), (None, None));
    }
}
