//! Whether another process is tracing.

use super::super::Error;
use super::super::control::{Control, is_no_entry};
use crate::pseudo_file;
use std::path::PathBuf;

/// A reason not to trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The file that shows it.
    pub file: PathBuf,
    /// The file's content.
    pub content: String,
    /// Its meaning.
    pub meaning: &'static str,
    /// How to end it.
    pub remedy: String,
    /// Whether it may be a leftover of a tracer that ended long ago: a setting, or events in the
    /// buffer. `--force` ignores these.
    pub is_leftover: bool,
}

/// Lists that restrict tracing, empty unless they are in use.
const LISTS: [(&str, &str); 6] = [
    (
        "set_ftrace_filter",
        "a filter selects the functions to trace",
    ),
    (
        "set_ftrace_notrace",
        "a filter excludes functions from tracing",
    ),
    (
        "set_graph_function",
        "a filter selects the functions to graph",
    ),
    (
        "set_graph_notrace",
        "a filter excludes functions from graphing",
    ),
    ("set_ftrace_pid", "a filter selects the processes to trace"),
    (
        "set_event_pid",
        "a filter selects the processes whose events are recorded",
    ),
];

/// Numbers that are 0 unless they are in use.
const NUMBERS: [(&str, &str); 2] = [
    ("tracing_thresh", "only slow calls are recorded"),
    ("max_graph_depth", "the depth of graphed calls is limited"),
];

/// Every sign that another process traces, or has left settings behind.
///
/// # Errors
/// If a file that exists can't be read.
pub fn conflicts(top: &Control) -> Result<Vec<Conflict>, Error> {
    let mut found = Vec::new();
    let tracer = top.setting("current_tracer")?.unwrap_or_default();
    if tracer != "nop" {
        found.push(Conflict {
            remedy: format!(
                "stop that tracer, or: echo nop > {}",
                top.path("current_tracer").display()
            ),
            ..conflict(
                top,
                "current_tracer",
                &tracer,
                "another tracer is on",
                false,
            )
        });
    }
    for (file, meaning) in LISTS {
        if let Some(text) = top.setting(file)?
            && text.lines().any(|line| !is_no_entry(line.trim()))
        {
            found.push(Conflict {
                remedy: format!("echo > {}", top.path(file).display()),
                ..conflict(top, file, &text, meaning, true)
            });
        }
    }
    for (file, meaning) in NUMBERS {
        if let Some(text) = top.setting(file)?
            && text != "0"
        {
            found.push(Conflict {
                remedy: format!("echo 0 > {}", top.path(file).display()),
                ..conflict(top, file, &text, meaning, true)
            });
        }
    }
    let events = top.setting("set_event")?.unwrap_or_default();
    if !events.is_empty() {
        let remedy = format!(
            "stop the program that records them, or: echo > {}",
            top.path("set_event").display()
        );
        found.push(Conflict {
            remedy,
            ..conflict(
                top,
                "set_event",
                &events,
                "another program records events",
                false,
            )
        });
    }
    found.extend(held_events(top)?);
    found.extend(graphing_instances(top)?);
    Ok(found)
}

/// Text of the refusal: each conflict with its file, its content and the remedy.
#[must_use]
pub fn explain(conflicts: &[Conflict]) -> String {
    let mut text = String::from("tracefs is in use, and tracing would disturb it:");
    for conflict in conflicts {
        text += &format!(
            "\n  {} reads {:?}: {}. To end it: {}",
            conflict.file.display(),
            conflict.content,
            conflict.meaning,
            conflict.remedy
        );
    }
    if conflicts.iter().all(|conflict| conflict.is_leftover) {
        text += "\nIf they are no longer needed, --force traces anyway and restores the settings afterwards";
    }
    text
}

fn conflict(
    top: &Control,
    file: &str,
    content: &str,
    meaning: &'static str,
    is_leftover: bool,
) -> Conflict {
    Conflict {
        file: top.path(file),
        content: shortened(content),
        meaning,
        remedy: String::new(),
        is_leftover,
    }
}

/// The first lines of a list that may be long.
fn shortened(content: &str) -> String {
    const SHOWN: usize = 3;
    let lines: Vec<&str> = content.lines().collect();
    match lines.len() {
        0..=SHOWN => lines.join(", "),
        count => format!("{}, … ({count} lines)", lines[..SHOWN].join(", ")),
    }
}

/// Events in the buffer: setting a tracer discards them.
fn held_events(top: &Control) -> Result<Option<Conflict>, Error> {
    let mut entries = 0;
    for cpu in pseudo_file::names(&top.path("per_cpu")) {
        let stats = top.setting(&format!("per_cpu/{cpu}/stats"))?;
        entries += stats.map_or(0, |stats| {
            super::super::capture::Stats::parse(&stats).entries
        });
    }
    Ok((entries > 0).then(|| Conflict {
        file: top.path("trace"),
        content: format!("{entries} events"),
        meaning: "the buffer contains recorded events, which would be lost",
        remedy: format!(
            "save what you need from it, then: echo > {}",
            top.path("trace").display()
        ),
        is_leftover: true,
    }))
}

/// Instances in which function_graph runs share the list of functions to graph with us.
fn graphing_instances(top: &Control) -> Result<Option<Conflict>, Error> {
    for name in pseudo_file::names(&top.path("instances")) {
        let file = format!("instances/{name}/current_tracer");
        let tracer = top.setting(&file)?.unwrap_or_default();
        if tracer.starts_with("function_graph") {
            return Ok(Some(Conflict {
                remedy: format!(
                    "stop that tracer, or: echo nop > {}",
                    top.path(&file).display()
                ),
                ..conflict(
                    top,
                    &file,
                    &tracer,
                    "an instance graphs functions, with lists that all instances share",
                    false,
                )
            }));
        }
    }
    Ok(None)
}
