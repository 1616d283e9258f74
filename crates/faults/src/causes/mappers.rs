//! Whose code maps memory: an allocator's or the program's own. Settings affect only the former.

use super::Attributor;
use pagewise_model::address_space::Mapping;
use pagewise_model::event::Sample;
use pagewise_model::findings::RegionKind;

/// Instructions this far apart (bytes) belong to different functions; the longest of libc's memory
/// functions, with their first and main loops, are shorter.
const SAME_CODE: u64 = 2048;

/// Parts of the names of files that contain an allocator: `libc.so.6`, `libc-2.31.so`,
/// `ld-musl-x86_64.so.1`, `libjemalloc.so.2`.
const ALLOCATOR_FILES: [&str; 4] = ["libc.so", "libc-", "ld-musl", "malloc"];
/// Those of them that contain the C library's wrappers of system calls.
const C_LIBRARIES: [&str; 3] = ["libc.so", "libc-", "ld-musl"];

/// Whose code mapped a stretch of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mapper {
    /// Not seen, or code that may belong to either.
    #[default]
    Unknown,
    /// A file that contains an allocator.
    Allocator,
    /// Other code.
    Program,
}

/// Freed pages of separately mapped blocks, by whose code had mapped them.
#[derive(Clone, Copy, Debug, Default)]
pub struct MappedBy {
    allocator: u64,
    program: u64,
}

impl MappedBy {
    pub(super) fn add(&mut self, mapper: Mapper, pages: u64) {
        match mapper {
            Mapper::Allocator => self.allocator += pages,
            Mapper::Program => self.program += pages,
            Mapper::Unknown => {}
        }
    }

    /// The allocators' share of the known pages; `None` if none are known.
    #[must_use]
    pub fn allocators_share(self) -> Option<f64> {
        let known = self.allocator + self.program;
        (known > 0).then(|| self.allocator as f64 / known as f64)
    }
}

impl Attributor {
    /// Whose code calls `mmap(2)` through the C library's function, which is at `at` and returns to
    /// `caller`. glibc's `malloc` needs the result, so it never ends in a jump to `mmap` that would
    /// show its own caller (`sysmalloc_mmap`, malloc/malloc.c). Code that makes the system call
    /// itself may be a runtime's or a static allocator's.
    pub(super) fn mapper(&self, process: usize, at: u64, caller: u64) -> Mapper {
        let space = &self.processes[process].space;
        let Some(wrapper) = space.find(at) else {
            return Mapper::Unknown;
        };
        // A return address may be the first of the next function.
        match space.find(caller.wrapping_sub(1)) {
            Some(code) if is_of(wrapper, &C_LIBRARIES) => match is_of(code, &ALLOCATOR_FILES) {
                true => Mapper::Allocator,
                false if self.managed_in(process).has_runtime => Mapper::Unknown,
                false => Mapper::Program,
            },
            _ => Mapper::Unknown,
        }
    }

    /// Distinguishes blocks of an allocator from a program's own mappings: an allocator writes its
    /// header first (`sysmalloc_mmap` in glibc's malloc.c), so the code that takes the block's
    /// first fault is in the C library, and far from the code that takes the second. A program that
    /// writes a header of its own does so in its own code. Both faults are recorded only while each
    /// fault is.
    pub(super) fn note_block(
        &mut self,
        thread: usize,
        sample: &Sample<'_>,
        address: u64,
        region: RegionKind,
    ) {
        let begun = self.threads[thread].block_begun.take();
        if sample.period > 1 || region != RegionKind::MmappedChunk {
            return;
        }
        let page = address >> self.page_shift;
        if let Some((first, ip)) = begun
            && page == first + 1
        {
            let is_far = sample.ip.abs_diff(ip) > SAME_CODE;
            match self.is_allocators_code(sample.pid, ip) {
                _ if !is_far => self.tally.blocks += 1,
                Some(headed) => {
                    self.tally.blocks += 1;
                    self.tally.headed_blocks += u64::from(headed);
                }
                None => {}
            }
        }
        let process = self.process(sample.pid);
        let start = self.processes[process]
            .region_at(address)
            .map(|(start, _)| start);
        if start.is_some_and(|start| start >> self.page_shift == page) {
            self.threads[thread].block_begun = Some((page, sample.ip));
        }
    }

    /// Whether code belongs to a file that contains an allocator; `None` if that cannot be decided:
    /// no known mapping, or a program without a separate C library.
    fn is_allocators_code(&mut self, pid: i32, ip: u64) -> Option<bool> {
        let process = self.process(pid);
        let space = &self.processes[process].space;
        let own = space.find(ip)?;
        let is_dynamic = space.iter().any(|mapping| is_of(mapping, &ALLOCATOR_FILES));
        is_dynamic.then(|| is_of(own, &ALLOCATOR_FILES))
    }
}

fn is_of(mapping: &Mapping, files: &[&str]) -> bool {
    let file = mapping.path.rsplit('/').next().unwrap_or(&mapping.path);
    files.iter().any(|part| file.contains(part))
}

#[cfg(test)]
mod tests {
    use crate::causes::tests::{Recorded, Stream, sidecar};
    use pagewise_model::allocator::{Allocator, AllocatorKind};

    const LIBC: u64 = 0x7f10_0000_0000;
    const PROGRAM: u64 = 0x5500_0000_0000;
    const BLOCK: u64 = 0x7f00_0000_0000;

    /// The allocators' share of the freed and reused memory, mapped by calls with these frames in a
    /// process with this runtime.
    fn share(frames: &[u64], runtime: Option<AllocatorKind>) -> Option<f64> {
        let mut sidecar = sidecar();
        sidecar.allocators.extend(runtime.map(|kind| Allocator {
            kind,
            version: None,
            evidence: String::new(),
            settings: Default::default(),
            is_static: false,
            ..Default::default()
        }));
        let mut stream = Stream::with_sidecar(Recorded::Sampled(61), &sidecar);
        stream.code(1, LIBC, b"/usr/lib/x86_64-linux-gnu/libc.so.6");
        stream.code(1, PROGRAM, b"/usr/bin/program");
        for _ in 0..2 {
            stream.map_from(1, BLOCK, 64, Some(frames));
            stream.touch(1, BLOCK, 64);
            stream.unmap(1, BLOCK, 64);
        }
        stream.finish().tally.mapped_by.allocators_share()
    }

    #[test]
    fn the_code_that_calls_mmap_tells_whose_memory_it_is() {
        assert_eq!(share(&[LIBC + 0x10, LIBC + 0x200], None), Some(1.0));
        assert_eq!(share(&[LIBC + 0x10, PROGRAM + 0x20], None), Some(0.0));
    }

    #[test]
    fn a_return_address_at_a_files_end_is_of_the_call_before() {
        let behind = PROGRAM + 16 * 4096;
        assert_eq!(share(&[LIBC + 0x10, behind], None), Some(0.0));
    }

    #[test]
    fn code_that_may_be_an_allocators_tells_nothing() {
        // The program's own system call, as made by a static allocator or Go.
        assert_eq!(share(&[PROGRAM + 0x10, PROGRAM + 0x20], None), None);
        // A caller outside any known file, and none at all.
        assert_eq!(share(&[LIBC + 0x10, 0x1234], None), None);
        assert_eq!(share(&[LIBC + 0x10], None), None);
        let of_runtime = [LIBC + 0x10, PROGRAM + 0x20];
        assert_eq!(share(&of_runtime, Some(AllocatorKind::Cpython)), None);
    }
}
