//! Restoring the content of files.

use super::super::control::{Control, is_no_entry};
use super::journal::Entries;
use std::fmt;
use std::fs;

/// A file whose content differs from before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The file, below the top of tracefs.
    pub file: String,
    /// Its earlier content.
    pub before: String,
    /// Its content now, or why it is unknown.
    pub now: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, now) = (self.before.trim(), self.now.trim());
        write!(out, "{} was {before:?} and is {now:?}", self.file)
    }
}

/// Turns tracing off, restores everything, then turns on what was on.
///
/// The order matters: emptying a filter while a function tracer is on would trace every function of
/// the kernel, and old kernels accept the tracer's own options only while it is on.
pub(super) fn restore(top: &Control, entries: &Entries) -> Vec<Difference> {
    // Any failure shows when the files are compared.
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

/// The order of restoring files.
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
    // Rewriting an unchanged file would be harmless, but some writes are slow.
    if top.read(file).is_ok_and(|now| now == content) {
        return;
    }
    // Any failure shows when the files are compared.
    if is_list(file) {
        let lines = content.lines().map(str::trim);
        let lines = lines.filter(|line| !is_no_entry(line));
        // A function of a module is read as `name [module]`.
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
        // `1*`: on, with a trigger in addition.
        return content.trim_end_matches('*');
    }
    match never_expanded(content) {
        Some(size) => size,
        None => content,
    }
}

/// `1408` of `7 (expanded: 1408)`: a buffer that no tracer has used since boot. Once it was used,
/// this state cannot be restored, only the size that it expands to.
fn never_expanded(content: &str) -> Option<&str> {
    let (_, rest) = content.split_once("(expanded: ")?;
    rest.trim_end().strip_suffix(')')
}

/// Whether the buffer now has the size to which it expands by itself, as the kernel rounds it: a
/// page of the buffer has room for less than a page.
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
