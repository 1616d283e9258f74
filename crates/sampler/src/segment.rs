//! A process's part of the shared file, as its library writes it. One thread at a time: that which holds
//! the lock of the live blocks.

use crate::draw::Weight;
use crate::layout::{
    FRAMES, HEADER_BYTES, Header, MAGIC, MODULES, PATHS, SEGMENT_BYTES, SEGMENTS, SITES, Segment,
    Site, Sums, WORDS, segment_at,
};
use crate::objects::Part;
use crate::sys;
use core::ffi::CStr;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Sites by the hash of their frames: number plus one, or 0.
pub type Index = [AtomicU32; SITES * 2];

/// What the header tells.
pub struct Settings {
    pub period: u64,
    pub seed: u64,
}

/// Maps a segment of the file at `path` that is free, and takes it for this process.
pub fn claim(path: &CStr) -> Option<(NonNull<Segment>, Settings)> {
    let file = sys::open(path)?;
    let claimed = claim_in(file);
    sys::close(file);
    claimed
}

fn claim_in(file: i32) -> Option<(NonNull<Segment>, Settings)> {
    let at = sys::map(file, 0, HEADER_BYTES)?;
    let number = {
        // SAFETY: as many bytes are mapped, of which all values are valid; the file is pagewise's, which
        // does not shorten it.
        let header = unsafe { &*at.cast::<Header>() };
        take_number(header).map(|number| {
            let settings = Settings {
                period: header.period.load(Relaxed).max(1),
                seed: header.seed.load(Relaxed),
            };
            (number, settings)
        })
    };
    // SAFETY: the reference is gone.
    unsafe { sys::unmap(at, HEADER_BYTES) };
    let (number, settings) = number?;
    let segment = sys::map(file, segment_at(number), SEGMENT_BYTES)?;
    Some((NonNull::new(segment.cast())?, settings))
}

fn take_number(header: &Header) -> Option<u32> {
    if header.magic.load(Relaxed) != MAGIC {
        return None;
    }
    let next = |number| (number < SEGMENTS).then_some(number + 1);
    let number = header.next.fetch_update(Relaxed, Relaxed, next);
    if number.is_err() {
        header.refused.fetch_add(1, Relaxed);
    }
    number.ok()
}

impl Segment {
    /// Describes this process.
    pub fn begin(&self, parent: u32) {
        let mut path = [0; 1024];
        let bytes = sys::link(c"/proc/self/exe", &mut path);
        self.add_path(path.get(..bytes).unwrap_or_default());
        let bytes = bytes.min(path.len());
        self.head.program.store(bytes as u32, Relaxed);
        self.head.began.store(sys::now(), Relaxed);
        self.head.parent.store(parent, Relaxed);
        // The first site, of stacks without room.
        self.add_site(&[]);
        self.head.pid.store(sys::process(), Release);
    }

    /// Adds a part of a program or library, with the build id and the path of its file, unless it is the last one known at its address.
    pub fn note(&self, part: Part, build_id: &[u8], path: &[u8]) {
        let count = self.head.modules.load(Relaxed) as usize;
        let known = self.modules.iter().take(count).rev();
        let mut met = known
            .filter(|one| one.start.load(Relaxed) < part.end && part.start < one.end.load(Relaxed));
        if met.next().is_some_and(|one| {
            one.start.load(Relaxed) == part.start
                && one.end.load(Relaxed) == part.end
                && one.offset.load(Relaxed) == part.offset
                && self.is_path(one.path.load(Relaxed), one.path_bytes.load(Relaxed), path)
        }) {
            return;
        }
        let Some(module) = self.modules.get(count) else {
            return;
        };
        let Some(at) = self.add_path(path) else {
            return;
        };
        module.start.store(part.start, Relaxed);
        module.end.store(part.end, Relaxed);
        module.offset.store(part.offset, Relaxed);
        module.path.store(at, Relaxed);
        module.path_bytes.store(path.len() as u32, Relaxed);
        for (to, byte) in module.build_id.iter().zip(build_id) {
            to.store(*byte, Relaxed);
        }
        module.build_id_bytes.store(build_id.len() as u32, Relaxed);
        let sites = self.head.sites.load(Relaxed);
        module.sites.store(sites.into(), Relaxed);
        let count = (count + 1).min(MODULES) as u32;
        self.head.modules.store(count, Release);
    }

    fn is_path(&self, at: u32, bytes: u32, path: &[u8]) -> bool {
        bytes as usize == path.len()
            && (self.paths.iter().skip(at as usize))
                .zip(path)
                .all(|(known, byte)| known.load(Relaxed) == *byte)
    }

    /// Where the path is; `None` if there is no room.
    fn add_path(&self, path: &[u8]) -> Option<u32> {
        let at = self.head.paths.load(Relaxed);
        let end = at as usize + path.len();
        if end > PATHS {
            return None;
        }
        for (to, byte) in self.paths.iter().skip(at as usize).zip(path) {
            to.store(*byte, Relaxed);
        }
        self.head.paths.store(end as u32, Relaxed);
        Some(at)
    }

    /// The number of the site with these frames; 0, that of none, where there is no more room.
    pub fn site_of(&self, frames: &[u64], index: &Index) -> u32 {
        let mut at = hash(frames) as usize % index.len();
        loop {
            let entry = index[at].load(Relaxed);
            let Some(number) = entry.checked_sub(1) else {
                break;
            };
            if self.has_frames(number, frames) {
                return number;
            }
            at = (at + 1) % index.len();
        }
        match self.add_site(frames) {
            Some(number) => {
                index[at].store(number + 1, Relaxed);
                number
            }
            None => {
                self.head.crowded.fetch_add(1, Relaxed);
                0
            }
        }
    }

    fn has_frames(&self, number: u32, frames: &[u64]) -> bool {
        let site = &self.sites[number as usize];
        let words = self.words.iter().skip(site.words.load(Relaxed) as usize);
        site.frames.load(Relaxed) as usize == frames.len()
            && words
                .zip(frames)
                .all(|(word, frame)| word.load(Relaxed) == *frame)
    }

    fn add_site(&self, frames: &[u64]) -> Option<u32> {
        let number = self.head.sites.load(Relaxed);
        let site = self.sites.get(number as usize)?;
        let at = self.head.words.load(Relaxed);
        let end = at as usize + frames.len();
        if end > WORDS || frames.len() > FRAMES {
            return None;
        }
        for (word, frame) in self.words.iter().skip(at as usize).zip(frames) {
            word.store(*frame, Relaxed);
        }
        site.words.store(at, Relaxed);
        site.frames.store(frames.len() as u32, Relaxed);
        self.head.words.store(end as u32, Relaxed);
        self.head.sites.store(number + 1, Release);
        Some(number)
    }

    /// Memory of this weight was allocated at a site: a block, or what one grew by.
    pub fn allocated(&self, site: u32, weight: Weight) {
        self.sites[site as usize].allocated.add(weight, 1.0);
    }

    /// A block of this weight is live.
    pub fn lives(&self, site: u32, weight: Weight) {
        self.change(&self.sites[site as usize], weight, 1.0);
        let live = value(&self.head.live);
        if live > value(&self.head.peak) {
            set(&self.head.peak, live);
            self.head.epoch.fetch_add(1, Relaxed);
            self.head.peaked.store(sys::now(), Relaxed);
        }
    }

    /// A block of this weight is no longer live.
    pub fn dies(&self, site: u32, weight: Weight) {
        self.change(&self.sites[site as usize], weight, -1.0);
    }

    /// Changes what is live at a site. What was live at the last peak is kept first, if it was not yet.
    fn change(&self, site: &Site, weight: Weight, sign: f64) {
        let epoch = self.head.epoch.load(Relaxed);
        if site.epoch.load(Relaxed) != epoch {
            site.at_peak.copy(&site.live);
            site.epoch.store(epoch, Relaxed);
        }
        site.live.add(weight, sign);
        let live = value(&self.head.live) + sign * weight.bytes;
        set(&self.head.live, live.max(0.0));
    }
}

impl Sums {
    fn add(&self, weight: Weight, sign: f64) {
        let parts = [
            (&self.bytes, weight.bytes),
            (&self.bytes_variance, weight.bytes_variance),
            (&self.blocks, weight.blocks),
            (&self.blocks_variance, weight.blocks_variance),
        ];
        for (sum, part) in parts {
            set(sum, (value(sum) + sign * part).max(0.0));
        }
    }

    fn copy(&self, other: &Self) {
        let parts = [
            (&self.bytes, &other.bytes),
            (&self.bytes_variance, &other.bytes_variance),
            (&self.blocks, &other.blocks),
            (&self.blocks_variance, &other.blocks_variance),
        ];
        for (to, from) in parts {
            to.store(from.load(Relaxed), Relaxed);
        }
    }
}

fn value(of: &AtomicU64) -> f64 {
    f64::from_bits(of.load(Relaxed))
}

fn set(of: &AtomicU64, value: f64) {
    of.store(value.to_bits(), Relaxed);
}

fn hash(frames: &[u64]) -> u64 {
    let mixed = frames.iter().fold(frames.len() as u64, |hash, frame| {
        (hash.rotate_left(5) ^ frame).wrapping_mul(0x517c_c1b7_2722_0a95)
    });
    mixed >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{FILE_BYTES, HEADER_BYTES};
    use crate::reading::{self, Process};
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    /// A file, and a segment of it as a library maps it.
    fn claimed() -> (File, &'static Segment) {
        let file = tempfile::tempfile().expect("a temporary folder");
        file.set_len(FILE_BYTES).expect("sparse");
        let header = reading::header(1 << 19, 5);
        assert_eq!(header.len(), HEADER_BYTES);
        file.write_all_at(&header, 0).expect("writable");
        let (segment, settings) = claim_in(file.as_raw_fd()).expect("there is room");
        assert_eq!((settings.period, settings.seed), (1 << 19, 5));
        // SAFETY: mapped for as long as the test runs.
        (file, unsafe { segment.as_ref() })
    }

    fn only(file: &File) -> Process {
        let mut read = reading::read(file).expect("readable").processes;
        assert_eq!(read.len(), 1);
        read.remove(0)
    }

    fn index() -> Box<Index> {
        let index: Vec<AtomicU32> = (0..SITES * 2).map(|_| AtomicU32::new(0)).collect();
        index.try_into().expect("as long")
    }

    fn allocate(segment: &Segment, site: u32, weight: Weight) {
        segment.allocated(site, weight);
        segment.lives(site, weight);
    }

    fn exactly(bytes: f64) -> Weight {
        Weight {
            bytes,
            blocks: 1.0,
            ..Weight::default()
        }
    }

    #[test]
    fn the_peak_is_what_was_live_then_at_each_site() {
        let (file, segment) = claimed();
        segment.begin(0);
        let index = index();
        let [a, b, c] = [[1, 2], [1, 3], [4, 2]].map(|frames| segment.site_of(&frames, &index));
        allocate(segment, a, exactly(100.0));
        allocate(segment, b, exactly(50.0));
        segment.dies(a, exactly(100.0));
        allocate(segment, b, exactly(60.0));
        allocate(segment, c, exactly(70.0));
        // 180 are live: the peak.
        segment.dies(b, exactly(50.0));
        allocate(segment, a, exactly(20.0));
        segment.dies(c, exactly(70.0));
        let read = only(&file);
        let bytes = |of: fn(&reading::Holder) -> reading::Total| -> Vec<f64> {
            read.sites[1..].iter().map(|site| of(site).bytes).collect()
        };
        assert_eq!(bytes(|site| site.peak), [0.0, 110.0, 70.0]);
        assert_eq!(bytes(|site| site.end), [20.0, 60.0, 0.0]);
        assert_eq!(bytes(|site| site.allocated), [120.0, 110.0, 70.0]);
        assert_eq!(read.sites[2].frames, [1, 3]);
    }

    #[test]
    fn stacks_without_room_count_for_the_first_site() {
        let (file, segment) = claimed();
        segment.begin(7);
        let index = index();
        for frame in 0..SITES as u64 + 100 {
            let site = segment.site_of(&[frame], &index);
            assert_eq!(site, segment.site_of(&[frame], &index));
            allocate(segment, site, exactly(1.0));
        }
        let read = only(&file);
        assert_eq!((read.parent, read.counts.crowded), (Some(7), 202));
        assert_eq!((read.sites.len(), read.sites[0].end.bytes), (SITES, 101.0));
    }

    #[test]
    fn code_is_noted_once_until_other_code_is_there() {
        let (file, segment) = claimed();
        segment.begin(0);
        let index = index();
        let part = |start, offset| Part {
            start,
            end: start + 10,
            offset,
        };
        for _ in 0..2 {
            segment.note(part(100, 0), b"ID", b"/a");
            segment.note(part(200, 0), b"", b"");
        }
        segment.site_of(&[105], &index);
        segment.note(part(105, 3), b"", b"/b");
        segment.note(part(100, 0), b"ID", b"/a");
        let read = only(&file);
        let found: Vec<_> = read
            .modules
            .iter()
            .map(|one| (one.start, one.path.as_str(), one.first_site))
            .collect();
        assert_eq!(read.modules[0].build_id, b"ID");
        let own = read.program.as_str();
        assert!(own.contains("pagewise_sampler"), "{own}");
        assert_eq!(
            found,
            [
                (100, "/a", 1),
                (200, own, 1),
                (105, "/b", 2),
                (100, "/a", 2)
            ]
        );
    }

    #[test]
    fn processes_beyond_the_room_are_counted() {
        let file = tempfile::tempfile().expect("a temporary folder");
        file.set_len(FILE_BYTES).expect("sparse");
        file.write_all_at(&reading::header(1, 0), 0)
            .expect("writable");
        for number in 0..SEGMENTS + 3 {
            let claimed = claim_in(file.as_raw_fd());
            assert_eq!(claimed.is_some(), number < SEGMENTS);
            if let Some((segment, _)) = claimed {
                // SAFETY: nothing refers to it.
                unsafe { sys::unmap(segment.as_ptr().cast(), SEGMENT_BYTES) };
            }
        }
        assert_eq!(reading::read(&file).expect("readable").refused, 3);
    }
}
