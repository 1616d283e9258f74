//! Records of what was there before recording began: names, threads and mappings from `/proc`.

use super::notes::Note;
use crate::proc::{MapsEntry, ProcRoot};
use crate::pseudo_file;
use pagewise_model::formats::perf_data::synthesise::{self, MapsLine, SampleId};
use std::path::Path;

/// Records of processes `pids` with all their threads, as if they came first. Processes that end
/// meanwhile are passed over.
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

/// The kernel's code, where its addresses are not hidden.
pub(super) fn kernel(sample_type: u64, proc: &Path) -> Vec<u8> {
    let of = SampleId {
        sample_type,
        ..SampleId::default()
    };
    super::kernel_text::range(proc)
        .and_then(|(text, end)| synthesise::kernel_mmap(text, end, &of))
        .unwrap_or_default()
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
    use std::fs;

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
