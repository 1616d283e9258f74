//! Writing back what files held.

use super::super::control::{Control, is_no_entry};
use super::journal::Entries;
use std::fmt;
use std::fs;

/// A file that does not read as it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The file, below the top of tracefs.
    pub file: String,
    /// What it held.
    pub before: String,
    /// What it holds now, or why that is unknown.
    pub now: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, now) = (self.before.trim(), self.now.trim());
        write!(out, "{} was {before:?} and is {now:?}", self.file)
    }
}

/// Turns tracing off, puts everything back, then turns on what was on.
///
/// The order matters: emptying a filter while a function tracer is on would trace every function
/// of the kernel, and the tracer's own options can only be set on old kernels while it is on.
pub(super) fn restore(top: &Control, entries: &Entries) -> Vec<Difference> {
    // Whatever fails here shows when the files are compared.
    for instance in &entries.instances {
        let instance = Control::at(top.path("instances").join(instance));
        let _ = instance.write("tracing_on", "0");
        let _ = instance.write("current_tracer", "nop");
        let _ = fs::remove_dir(instance.root());
    }
    let changed = |file: &str| entries.saved.iter().any(|saved| saved.file == file);
    if changed("tracing_on") {
        let _ = top.write("tracing_on", "0");
    }
    let mut files: Vec<_> = entries.saved.iter().collect();
    files.sort_by_key(|saved| rank(&saved.file));
    let mut off = !changed("current_tracer");
    for saved in files {
        if !off && rank(&saved.file) > Rank::Option {
            let _ = top.write("current_tracer", "nop");
            off = true;
        }
        write_back(top, &saved.file, &saved.content);
    }
    differences(top, entries)
}

/// When a file is put back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Event,
    Option,
    List,
    Setting,
    Buffer,
    Tracer,
    Switch,
}

fn rank(file: &str) -> Rank {
    match file {
        "tracing_on" => Rank::Switch,
        "current_tracer" => Rank::Tracer,
        _ if file.starts_with("events/") => Rank::Event,
        _ if file.starts_with("options/") => Rank::Option,
        _ if is_list(file) => Rank::List,
        _ if file.ends_with("buffer_size_kb") => Rank::Buffer,
        _ => Rank::Setting,
    }
}

fn is_list(file: &str) -> bool {
    file.starts_with("set_ftrace_")
        || file.starts_with("set_graph_")
        || file.starts_with("set_event")
}

fn write_back(top: &Control, file: &str, content: &str) {
    // Restoring what is as it was would be harmless to read, but some writes are slow.
    if top.read(file).is_ok_and(|now| now == content) {
        return;
    }
    // Whatever fails shows when the files are compared.
    if is_list(file) {
        let lines = content.lines().map(str::trim);
        let lines = lines.filter(|line| !is_no_entry(line));
        // `name [module]` is how a function of a module reads.
        let names: Vec<&str> = lines
            .map(|line| line.split(' ').next().unwrap_or(line))
            .collect();
        let _ = match names.as_slice() {
            [] => top.clear(file),
            names => top.replace(file, names.iter().copied()).map(drop),
        };
    } else {
        let _ = top.write(file, value(file, content));
    }
}

/// What to write so that the file reads `content`.
fn value<'a>(file: &str, content: &'a str) -> &'a str {
    let content = content.trim();
    if file == "trace_clock"
        && let Some(chosen) = crate::pseudo_file::bracketed(content)
    {
        return chosen;
    }
    if file.starts_with("events/") {
        // `1*`: on, and triggered besides.
        return content.trim_end_matches('*');
    }
    match never_expanded(content) {
        Some(size) => size,
        None => content,
    }
}

/// `1408` of `7 (expanded: 1408)`: a buffer that no tracer has used since the machine started.
/// Once it was used there is no way back to that, only to the size that it grows to.
fn never_expanded(content: &str) -> Option<&str> {
    let (_, rest) = content.split_once("(expanded: ")?;
    rest.trim_end().strip_suffix(')')
}

/// Whether the buffer now has the size that it grows to by itself, as the kernel rounds it: a
/// page of the buffer holds less than a page.
fn is_expanded(before: &str, now: &str) -> bool {
    let kib = |text: &str| text.trim().parse::<u64>().ok();
    let wanted = never_expanded(before).and_then(kib);
    wanted
        .zip(kib(now))
        .is_some_and(|(wanted, now)| (wanted..=wanted + 8).contains(&now))
}

fn differences(top: &Control, entries: &Entries) -> Vec<Difference> {
    let mut found = Vec::new();
    for saved in &entries.saved {
        let now = match top.read(&saved.file) {
            Ok(now) if now == saved.content => continue,
            Ok(now) if is_expanded(&saved.content, &now) => continue,
            Ok(now) => now,
            Err(error) => error.to_string(),
        };
        found.push(Difference {
            file: saved.file.clone(),
            before: saved.content.clone(),
            now,
        });
    }
    for instance in &entries.instances {
        let file = format!("instances/{instance}");
        if top.has(&file) {
            found.push(Difference {
                file,
                before: "absent".to_owned(),
                now: "still there: another process has a file of it open".to_owned(),
            });
        }
    }
    found
}
