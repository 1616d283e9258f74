//! What the library wrote, read by pagewise. Programs can write into the file as well, so nothing in it is
//! trusted: counts beyond the layout are cut.

use crate::layout::{
    BUILD_ID, FRAMES, HEADER_BYTES, Head, Header, MAGIC, MODULES, Module, PATHS, SEGMENTS, SITES,
    Segment, Site, Sums, WORDS, segment_at,
};
use std::fs::File;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::unix::fs::FileExt;

/// All that was sampled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Mean number of allocated bytes between two samples.
    pub period: u64,
    /// Processes that found no room.
    pub refused: u32,
    /// Those that did, in the order of their first allocation.
    pub processes: Vec<Process>,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// The process that forked it with the same program, if one did.
    pub parent: Option<u32>,
    /// Path of its program.
    pub program: String,
    /// Whether C++'s `new` went past the sampler.
    pub bypassed: bool,
    /// Samples, those freed, those not counted because there was no room for their blocks, those without a
    /// stack because there was no room for it, those whose stack was cut.
    pub counts: Counts,
    /// When it was first seen and when most was live, by `CLOCK_MONOTONIC` in nanoseconds.
    pub began_ns: u64,
    /// See `began_ns`.
    pub peaked_ns: u64,
    /// Code that was met, in this order.
    pub modules: Vec<Code>,
    /// Stacks; the first is that of samples without one.
    pub sites: Vec<Holder>,
}

/// Counts of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All.
    pub samples: u64,
    /// Freed.
    pub freed: u64,
    /// Not counted.
    pub untracked: u64,
    /// Without a stack.
    pub crowded: u64,
    /// With a cut stack.
    pub deep: u64,
}

/// Part of a program or library in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// The file.
    pub path: String,
    /// Its build id, empty if it has none.
    pub build_id: Vec<u8>,
    /// Sites before this one have other code there.
    pub first_site: u64,
}

/// What blocks from one stack add up to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holder {
    /// Return addresses, innermost first.
    pub frames: Vec<u64>,
    /// Live at the peak.
    pub peak: Total,
    /// Live at the end.
    pub end: Total,
    /// Ever allocated.
    pub allocated: Total,
}

/// Estimates with their variances.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// Bytes.
    pub bytes: f64,
    /// Of `bytes`.
    pub bytes_variance: f64,
    /// Blocks.
    pub blocks: f64,
    /// Of `blocks`.
    pub blocks_variance: f64,
}

/// The header of a new file, for samples every `period` bytes on average.
#[must_use]
pub fn header(period: u64, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    let words = [
        (offset_of!(Header, magic), MAGIC),
        (offset_of!(Header, period), period),
        (offset_of!(Header, seed), seed),
    ];
    for (at, word) in words {
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Reads the file.
///
/// # Errors
/// If it cannot be read, or is not of this build.
pub fn read(file: &File) -> io::Result<Sampled> {
    let header = part(file, 0, HEADER_BYTES)?;
    if u64_at(&header, offset_of!(Header, magic)) != MAGIC {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let used = u32_at(&header, offset_of!(Header, next)).min(SEGMENTS);
    let processes = (0..used).map(|number| process(file, segment_at(number)));
    let processes: io::Result<Vec<Option<Process>>> = processes.collect();
    Ok(Sampled {
        period: u64_at(&header, offset_of!(Header, period)),
        refused: u32_at(&header, offset_of!(Header, refused)),
        processes: processes?.into_iter().flatten().collect(),
    })
}

/// The process of the segment at this offset; `None` if it did not get far enough to be one.
fn process(file: &File, at: u64) -> io::Result<Option<Process>> {
    let head = part(file, at, size_of::<Head>())?;
    let count = |field, most: usize| (u32_at(&head, field) as usize).min(most);
    let number = |field| u64_at(&head, field);
    let pid = u32_at(&head, offset_of!(Head, pid));
    if pid == 0 {
        return Ok(None);
    }
    let within = |offset: usize, bytes| part(file, at + offset as u64, bytes);
    let paths = within(
        offset_of!(Segment, paths),
        count(offset_of!(Head, paths), PATHS),
    )?;
    let program = text(&paths, 0, count(offset_of!(Head, program), PATHS));
    let modules = count(offset_of!(Head, modules), MODULES) * size_of::<Module>();
    let modules = within(offset_of!(Segment, modules), modules)?;
    let modules = modules.chunks_exact(size_of::<Module>());
    let words = count(offset_of!(Head, words), WORDS) * 8;
    let words = within(offset_of!(Segment, words), words)?;
    let sites = count(offset_of!(Head, sites), SITES) * size_of::<Site>();
    let sites = within(offset_of!(Segment, sites), sites)?;
    let sites = sites.chunks_exact(size_of::<Site>());
    let epoch = number(offset_of!(Head, epoch));
    let parent = u32_at(&head, offset_of!(Head, parent));
    Ok(Some(Process {
        pid,
        bypassed: u32_at(&head, offset_of!(Head, bypassed)) != 0,
        parent: (parent != 0).then_some(parent),
        counts: Counts {
            samples: number(offset_of!(Head, samples)),
            freed: number(offset_of!(Head, freed)),
            untracked: number(offset_of!(Head, untracked)),
            crowded: number(offset_of!(Head, crowded)),
            deep: number(offset_of!(Head, deep)),
        },
        began_ns: number(offset_of!(Head, began)),
        peaked_ns: number(offset_of!(Head, peaked)),
        modules: modules
            .map(|bytes| module(bytes, &paths, &program))
            .collect(),
        sites: sites.map(|bytes| holder(bytes, &words, epoch)).collect(),
        program,
    }))
}

fn module(bytes: &[u8], paths: &[u8], program: &str) -> Code {
    let at = u32_at(bytes, offset_of!(Module, path)) as usize;
    let length = u32_at(bytes, offset_of!(Module, path_bytes)) as usize;
    Code {
        start: u64_at(bytes, offset_of!(Module, start)),
        end: u64_at(bytes, offset_of!(Module, end)),
        offset: u64_at(bytes, offset_of!(Module, offset)),
        path: match length {
            0 => program.to_owned(),
            _ => text(paths, at, length),
        },
        build_id: {
            let length = u32_at(bytes, offset_of!(Module, build_id_bytes)) as usize;
            let id = bytes
                .get(offset_of!(Module, build_id)..)
                .unwrap_or_default();
            id.iter().copied().take(length.min(BUILD_ID)).collect()
        },
        first_site: u64_at(bytes, offset_of!(Module, sites)),
    }
}

fn holder(bytes: &[u8], words: &[u8], epoch: u64) -> Holder {
    let at = u32_at(bytes, offset_of!(Site, words)) as usize * 8;
    let frames = (u32_at(bytes, offset_of!(Site, frames)) as usize).min(FRAMES);
    let stack = words.get(at..).unwrap_or_default().chunks_exact(8);
    let end = total(bytes, offset_of!(Site, live));
    Holder {
        frames: stack.take(frames).map(|word| u64_at(word, 0)).collect(),
        peak: match u64_at(bytes, offset_of!(Site, epoch)) == epoch {
            true => total(bytes, offset_of!(Site, at_peak)),
            false => end,
        },
        end,
        allocated: total(bytes, offset_of!(Site, allocated)),
    }
}

fn total(bytes: &[u8], at: usize) -> Total {
    // What is not a number of bytes was not written by the library.
    let sum = |field| match f64::from_bits(u64_at(bytes, at + field)) {
        sum if sum.is_finite() && sum > 0.0 => sum,
        _ => 0.0,
    };
    Total {
        bytes: sum(offset_of!(Sums, bytes)),
        bytes_variance: sum(offset_of!(Sums, bytes_variance)),
        blocks: sum(offset_of!(Sums, blocks)),
        blocks_variance: sum(offset_of!(Sums, blocks_variance)),
    }
}

fn part(file: &File, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let mut part = vec![0; bytes];
    file.read_exact_at(&mut part, at)?;
    Ok(part)
}

fn text(bytes: &[u8], at: usize, length: usize) -> String {
    let end = at.saturating_add(length).min(bytes.len());
    String::from_utf8_lossy(bytes.get(at..end).unwrap_or_default()).into_owned()
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.map_or(0, |word| u32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::FILE_BYTES;
    use std::io::Write;

    #[test]
    fn counts_beyond_the_layout_are_cut() {
        let mut file = tempfile::tempfile().expect("a temporary folder");
        file.set_len(FILE_BYTES).expect("sparse");
        file.write_all(&header(4096, 0)).expect("writable");
        let all = [0xff; size_of::<Head>()];
        file.write_all_at(&u32::MAX.to_le_bytes(), offset_of!(Header, next) as u64)
            .expect("writable");
        file.write_all_at(&all, segment_at(3)).expect("writable");
        let read = read(&file).expect("readable");
        assert_eq!((read.period, read.processes.len()), (4096, 1));
        let process = &read.processes[0];
        assert_eq!(process.sites.len(), SITES);
        assert_eq!(process.modules.len(), MODULES);
        assert_eq!(process.sites[7], Holder::default());
    }

    #[test]
    fn a_file_of_another_build_is_refused() {
        let file = tempfile::tempfile().expect("a temporary folder");
        file.set_len(FILE_BYTES).expect("sparse");
        let error = read(&file).expect_err("no magic");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
