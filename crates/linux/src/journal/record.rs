//! Lines of a journal, and the record they form together.

use super::{Error, boot_id, is_running};
use crate::hugepages::actuator::Change;
use crate::proc::ProcRoot;
use pagewise_model::huge_pages::Slot;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A process of ours that changes something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// What it was doing: `trace`, `huge balance`.
    pub who: String,
    /// Its process id.
    pub pid: i32,
    /// When it started, in clock ticks since boot, because ids are reused. 0 if unknown.
    pub start_ticks: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
}

/// The process whose pages are changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Process id.
    pub pid: i32,
    /// When it started, in clock ticks since boot, because ids are reused.
    pub start_ticks: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// Its name.
    pub comm: String,
}

/// A file that was about to be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The file; for tracefs, its path below the top.
    pub path: PathBuf,
    /// Its earlier content.
    pub before: String,
    /// Its new content, if known: a value that another process has written since then stays.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after: String,
}

/// A control group that was about to be created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeGroup {
    /// Its folder.
    pub folder: PathBuf,
    /// The group that its processes came from and are returned to.
    pub home: PathBuf,
}

/// A change of a page size that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotChange {
    /// Address of the slot, in hexadecimal.
    #[serde(with = "hexadecimal")]
    pub address: u64,
    /// The change.
    pub change: Change,
    /// The slot's earlier state.
    pub before: Slot,
}

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Line {
    /// The writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The process whose pages are changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// A file that is about to be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<Setting>,
    /// An instance of tracefs that is about to be created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// A control group that is about to be created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<MadeGroup>,
    /// A swap file that is about to be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<PathBuf>,
    /// A slot that is about to be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<SlotChange>,
}

/// Content of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The first writer.
    pub owner: Option<Owner>,
    /// The process whose pages were changed.
    pub subject: Option<Subject>,
    /// Files, in the order in which they were first written.
    pub settings: Vec<Setting>,
    /// Instances of tracefs that were created.
    pub instances: Vec<String>,
    /// Control groups that were created.
    pub groups: Vec<MadeGroup>,
    /// Swap files that were made.
    pub swaps: Vec<PathBuf>,
    /// Slots, in the order in which they were changed.
    pub slots: Vec<SlotChange>,
}

impl Owner {
    /// This process.
    #[must_use]
    pub fn this(who: &str) -> Self {
        let pid = i32::try_from(std::process::id()).unwrap_or_default();
        let stat = ProcRoot::default().stat(pid).ok().flatten();
        Self {
            who: who.to_owned(),
            pid,
            start_ticks: stat.map_or(0, |stat| stat.start_ticks),
            boot_id: boot_id(),
        }
    }

    /// Whether it is another process that still runs. Its lock shows this already, except on file
    /// systems whose locks apply to one host only.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        self.start_ticks > 0
            && u32::try_from(self.pid).is_ok_and(|pid| pid != std::process::id())
            && self.boot_id == boot_id()
            && is_running(self.pid, self.start_ticks)
    }
}

impl Record {
    /// The record in `text`, read from `path`.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Option<Self>, Error> {
        // After a crash of the machine, some file systems have zeros where a line was not written yet.
        let text = text.trim_end_matches('\0');
        // Cut off within the first line: nothing was started.
        let is_cut = text.starts_with('{') && !text.contains('\n');
        if text.is_empty() || is_cut {
            return Ok(None);
        }
        let mut record = Self::default();
        let count = text.lines().count();
        for (at, line) in text.lines().enumerate() {
            match serde_json::from_str::<Line>(line) {
                Ok(line) if line != Line::default() => record.add(line),
                // Cut off when its writer died.
                Err(_) if at > 0 && at + 1 == count && !text.ends_with('\n') => {}
                Ok(_) | Err(_) => {
                    return Err(Error::Line {
                        path: path.to_path_buf(),
                        line: at + 1,
                        text: line.chars().take(80).collect(),
                    });
                }
            }
        }
        Ok(Some(record))
    }

    fn add(&mut self, line: Line) {
        self.owner = self.owner.take().or(line.owner);
        self.subject = self.subject.take().or(line.subject);
        self.settings.extend(line.setting);
        self.instances.extend(line.instance);
        self.groups.extend(line.group);
        self.swaps.extend(line.swap);
        self.slots.extend(line.slot);
    }

    /// Whether the changes are still in effect, that is, whether they were made since the last
    /// boot.
    #[must_use]
    pub fn is_of_boot(&self, boot_id: &str) -> bool {
        let owner = self.owner.as_ref().map(|owner| &owner.boot_id);
        let subject = self.subject.as_ref().map(|subject| &subject.boot_id);
        owner.or(subject).is_none_or(|noted| noted == boot_id)
    }
}

mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{value:#x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16).map_err(D::Error::custom)
    }
}
