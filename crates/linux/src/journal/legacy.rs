//! Journals as earlier versions wrote them: of `trace` (below), and of `kernel.task_delayacct`,
//! which was the bare value. Journals of page sizes have today's format.
//!
//! ```text
//! pagewise-trace-journal 1
//! boot 6fd1b2c3-…
//! owner 4242
//! instance pagewise-4242       folder below instances/
//! save 4 current_tracer        length in bytes, file, then its content and a newline
//! nop
//! ```

use super::{Owner, Record, Setting};
use std::path::Path;

const TRACE_HEAD: &str = "pagewise-trace-journal 1\n";
const TASK_DELAYS: &str = "task-delayacct";

/// The record, if `text`, read from `path`, has an older format.
pub(super) fn record(path: &Path, text: &str) -> Option<Record> {
    if let Some(rest) = text.strip_prefix(TRACE_HEAD) {
        return trace(rest);
    }
    let is_switch = path.file_name().is_some_and(|name| name == TASK_DELAYS);
    let value = Some(text.trim()).filter(|text| is_switch && text.parse::<u32>().is_ok())?;
    Some(Record {
        settings: vec![setting("/proc/sys/kernel/task_delayacct", value)],
        ..Record::default()
    })
}

fn setting(path: &str, before: &str) -> Setting {
    Setting {
        path: path.into(),
        before: before.to_owned(),
        after: String::new(),
    }
}

fn trace(mut rest: &str) -> Option<Record> {
    let (mut boot_id, mut pid) = ("", 0);
    let mut record = Record::default();
    while let Some((line, after)) = rest.split_once('\n') {
        rest = after;
        let (key, value) = line.split_once(' ')?;
        match key {
            "boot" => boot_id = value,
            "owner" => pid = value.parse().unwrap_or_default(),
            "instance" => record.instances.push(value.to_owned()),
            "save" => {
                let (length, file) = value.split_once(' ')?;
                // A writer that was killed here never got to change the file.
                let Some((content, after)) = rest.split_at_checked(length.parse().ok()?) else {
                    break;
                };
                rest = after.strip_prefix('\n').unwrap_or_default();
                record.settings.push(setting(file, content));
            }
            _ => return None,
        }
    }
    record.owner = Some(Owner {
        who: "trace".to_owned(),
        pid,
        start_ticks: 0,
        boot_id: boot_id.to_owned(),
    });
    Some(record)
}
