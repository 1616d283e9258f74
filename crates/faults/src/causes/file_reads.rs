//! Where in their files programs wait for pages, and in which order.

use pagewise_model::address_space::Mapping;
use pagewise_model::findings::FileReads;
use pagewise_model::units::Bytes;
use rustc_hash::FxHashMap;

/// Files that are tracked separately; further ones are ignored.
const MOST_FILES: usize = 4_096;
/// A read at most this far after the thread's last one in this file continues it: some windows of
/// read-ahead (read_ahead_kb is 128 by default, but 8,192 on some virtual disks)…
const NEXT: u64 = 32 << 20;
/// … and at most this fraction of the file: one in eight random reads hits that.
const NEXT_PART: u64 = 8;
/// Files in the findings.
const MOST: usize = 8;

/// Reads of all files.
#[derive(Clone, Debug, Default)]
pub(super) struct Reads {
    files: Vec<File>,
    by_path: FxHashMap<Box<str>, u32>,
    /// Position of a thread's last read of a file.
    last: FxHashMap<(i32, u32), u64>,
}

#[derive(Clone, Debug)]
struct File {
    path: Box<str>,
    is_code: bool,
    /// End of the largest mapping, as an offset in the file.
    end: u64,
    reads: u64,
    /// Reads that follow another of the same thread, and those of them that continue it.
    followers: u64,
    in_order: u64,
}

impl Reads {
    /// A fault of thread `tid` at `address` in `mapping` waited for the file; it stands for `reads`
    /// reads.
    pub(super) fn note(&mut self, tid: i32, address: u64, reads: u64, mapping: &Mapping) {
        if !mapping.path.starts_with('/') {
            return;
        }
        let Some(index) = self.index_of(mapping) else {
            return;
        };
        let at = mapping
            .file_offset
            .saturating_add(address.saturating_sub(mapping.start));
        let end = mapping
            .file_offset
            .saturating_add(mapping.end - mapping.start);
        let before = self.last.insert((tid, index), at);
        // Several sources may report the same fault.
        if before == Some(at) {
            return;
        }
        let file = &mut self.files[index as usize];
        file.end = file.end.max(end);
        file.reads = file.reads.saturating_add(reads);
        if let Some(before) = before {
            file.followers += 1;
            let next = NEXT.min(file.end / NEXT_PART);
            file.in_order += u64::from((before..=before.saturating_add(next)).contains(&at));
        }
    }

    fn index_of(&mut self, mapping: &Mapping) -> Option<u32> {
        if let Some(&index) = self.by_path.get(&mapping.path) {
            return Some(index);
        }
        let index = u32::try_from(self.files.len()).ok()?;
        if self.files.len() >= MOST_FILES {
            return None;
        }
        self.by_path.insert(mapping.path.clone(), index);
        self.files.push(File {
            path: mapping.path.clone(),
            is_code: mapping.is_code(),
            end: 0,
            reads: 0,
            followers: 0,
            in_order: 0,
        });
        Some(index)
    }

    /// The files that were waited for, most waits first.
    pub(super) fn most_waited_for(mut self) -> Vec<FileReads> {
        self.files
            .sort_by(|a, b| b.reads.cmp(&a.reads).then(a.path.cmp(&b.path)));
        let message = self.files.into_iter().take(MOST).map(|file| FileReads {
            path: file.path.into(),
            is_code: file.is_code,
            mapped: Bytes(file.end),
            reads: file.reads,
            in_order: (file.followers > 0).then(|| file.in_order as f64 / file.followers as f64),
        });
        message.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(path: &str, start: u64, bytes: u64) -> Mapping {
        Mapping {
            start,
            end: start + bytes,
            file_offset: 0,
            protection: 1,
            flags: 1,
            path: path.into(),
            build_id: None,
            file: None,
        }
    }

    /// Bytes that one read usually brings in.
    const WINDOW: u64 = 128 << 10;

    #[test]
    fn sweeps_are_told_from_reads_at_random() {
        let mut reads = Reads::default();
        let (swept, random) = (
            mapping("/swept", 0x1000_0000, 64 << 20),
            mapping("/random", 0x9000_0000, 64 << 20),
        );
        for step in 0..512_u64 {
            reads.note(1, swept.start + step * WINDOW, 1, &swept);
            // Another thread has its own position.
            reads.note(2, swept.start + (511 - step) * WINDOW, 1, &swept);
            reads.note(
                1,
                random.start + step * 40_503 * 4_096 % (64 << 20),
                1,
                &random,
            );
        }
        let message = reads.most_waited_for();
        assert_eq!(
            (message[0].path.as_str(), message[0].reads),
            ("/swept", 1_024)
        );
        assert!(
            (message[0].in_order.unwrap() - 0.5).abs() < 1e-9,
            "{message:?}"
        );
        assert!(message[1].in_order.unwrap() < 0.2, "{message:?}");
    }

    #[test]
    fn one_read_has_no_order_and_memory_is_no_file() {
        let mut reads = Reads::default();
        reads.note(1, 0x5000, 1, &mapping("/once", 0x4000, 1 << 20));
        reads.note(1, 0x5000, 1, &mapping("[heap]", 0x4000, 1 << 20));
        let message = reads.most_waited_for();
        assert_eq!(message.len(), 1);
        assert_eq!(message[0].in_order, None);
    }
}
