//! Records of the state before recording started: names, threads and mappings from `/proc`.

use super::notes::Note;
use crate::proc::{MapsEntry, ProcRoot};
use crate::pseudo_file;
use pagewise_formats::perf_data::synthesise::{self, MapsLine, SampleId};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Records of processes `pids` with all their threads, as if they came first. Processes that end
/// meanwhile are skipped.
pub(super) fn processes(
    pids: &[i32],
    sample_type: u64,
    proc: &ProcRoot,
    notes: &mut Vec<Note>,
) -> Vec<u8> {
    let mut records = Vec::new();
    for &pid in pids {
        let of = SampleId {
            sample_type,
            pid,
            tid: pid,
            ..SampleId::default()
        };
        threads(&of, proc, &mut records);
        match proc.maps(pid) {
            Ok(entries) => {
                for entry in entries.unwrap_or_default() {
                    records.extend(mapping(&entry, &of).unwrap_or_default());
                }
            }
            Err(error) => notes.push(Note::MapsUnreadable {
                pid,
                reason: error.to_string(),
            }),
        }
    }
    records
}

/// The kernel's code, unless its addresses are hidden.
pub(super) fn kernel(sample_type: u64, proc: &Path) -> Vec<u8> {
    let of = SampleId {
        sample_type,
        ..SampleId::default()
    };
    super::kernel_text::range(proc)
        .and_then(|(text, end)| synthesise::kernel_mmap(text, end, &of))
        .unwrap_or_default()
}

/// All control groups of the hierarchy that samples refer to: that of `perf_event` if it has one of
/// its own (version 1), otherwise that of version 2. A group's number is its directory's inode
/// (kernel/cgroup/cgroup.c, `cgroup_id`).
pub(super) fn cgroups(sample_type: u64, proc: &Path) -> Vec<u8> {
    let of = SampleId {
        sample_type,
        ..SampleId::default()
    };
    let mounts = fs::read_to_string(proc.join("self/mountinfo")).unwrap_or_default();
    let mut records = Vec::new();
    if let Some(root) = cgroup_root(&mounts) {
        groups_below(&root, "/", &of, &mut records);
    }
    records
}

/// The mount point of that hierarchy (proc_pid_mountinfo(5): the fifth field is the mount point;
/// after a lone dash come the type, the source, and options of the file system).
fn cgroup_root(mounts: &str) -> Option<PathBuf> {
    let kinds = mounts.lines().filter_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let place = front.split(' ').nth(4)?;
        let mut back = back.split(' ');
        let (kind, options) = (back.next()?, back.nth(1)?);
        Some((place, kind, options))
    });
    let own = |&(_, kind, options): &(&str, &str, &str)| {
        kind == "cgroup" && options.split(',').any(|option| option == "perf_event")
    };
    let unified = |&(_, kind, _): &(&str, &str, &str)| kind == "cgroup2";
    let found = (kinds.clone().find(own)).or_else(|| kinds.clone().find(unified));
    found.map(|(place, _, _)| PathBuf::from(place))
}

fn groups_below(folder: &Path, path: &str, of: &SampleId, records: &mut Vec<u8>) {
    let Ok(metadata) = folder.metadata() else {
        return;
    };
    records.extend(synthesise::cgroup(metadata.ino(), path.as_bytes(), of));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let name = entry.file_name();
            let below = format!("{}/{}", path.trim_end_matches('/'), name.to_string_lossy());
            groups_below(&entry.path(), &below, of, records);
        }
    }
}

fn threads(process: &SampleId, proc: &ProcRoot, records: &mut Vec<u8>) {
    for tid in proc.tasks(process.pid) {
        let of = SampleId { tid, ..*process };
        if tid != process.pid {
            records.extend(synthesise::fork(process.pid, process.pid, &of));
        }
        let file = proc.process_path(process.pid, &format!("task/{tid}/comm"));
        if let Some(name) = pseudo_file::setting(&file) {
            records.extend(synthesise::comm(name.as_bytes(), false, &of));
        }
    }
}

fn mapping(entry: &MapsEntry, of: &SampleId) -> Option<Vec<u8>> {
    let line = MapsLine {
        start: entry.mapping.start,
        length: entry.mapping.end - entry.mapping.start,
        file_offset: entry.mapping.file_offset,
        major: entry.device.0,
        minor: entry.device.1,
        inode: entry.inode,
        protection: entry.mapping.protection,
        flags: entry.mapping.flags,
        path: entry.mapping.path.as_bytes(),
    };
    synthesise::mmap2(&line, of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_with_threads_and_mappings() {
        let root = tempfile::tempdir().unwrap();
        for tid in [40, 41] {
            let task = root.path().join(format!("40/task/{tid}"));
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("comm"), format!("worker-{tid}\n")).unwrap();
        }
        let maps = "00400000-00401000 r-xp 00000000 fe:00 17 /bin/x\n\
                    7f0000000000-7f0000002000 rw-p 00000000 00:00 0 \n";
        fs::write(root.path().join("40/maps"), maps).unwrap();
        let mut notes = Vec::new();
        let records = processes(&[40, 99], 6, &ProcRoot::at(root.path()), &mut notes);
        // COMM of the first thread, FORK and COMM of the second, two MMAP2.
        assert_eq!(kinds(&records), [3, 7, 3, 10, 10]);
        assert!(notes.is_empty());
    }

    #[test]
    fn groups_are_told_with_their_inodes_and_paths_from_the_root() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("unified");
        fs::create_dir_all(place.join("system.slice/ssh.service")).unwrap();
        fs::create_dir_all(root.path().join("self")).unwrap();
        let mounts = format!(
            "30 24 0:26 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n\
             31 24 0:27 / {} rw,nosuid - cgroup2 cgroup rw\n",
            place.display()
        );
        fs::write(root.path().join("self/mountinfo"), mounts).unwrap();
        let records = cgroups(0, root.path());
        assert_eq!(kinds(&records), [19, 19, 19]);
        let id = u64::from_le_bytes(records[8..16].try_into().unwrap());
        assert_eq!(id, place.metadata().unwrap().ino());
        let text = String::from_utf8_lossy(&records);
        assert!(text.contains("/system.slice/ssh.service\0"), "{text}");
        assert_eq!(cgroup_root("x"), None);
        let own =
            "30 24 0:26 / /a rw - cgroup2 x rw\n31 24 0:27 / /b rw - cgroup x rw,perf_event\n";
        assert_eq!(cgroup_root(own), Some("/b".into()));
    }

    fn kinds(mut records: &[u8]) -> Vec<u32> {
        let mut kinds = Vec::new();
        while !records.is_empty() {
            kinds.push(u32::from_le_bytes(records[..4].try_into().unwrap()));
            let size = u16::from_le_bytes(records[6..8].try_into().unwrap());
            records = &records[usize::from(size)..];
        }
        kinds
    }
}
