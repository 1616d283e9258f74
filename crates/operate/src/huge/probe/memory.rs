//! Memory of the chases, in pages of one size.

use super::{Bench, as_index};
use anyhow::{Context, Result};
use pagewise_linux::hugepages::actuator::Target;
use pagewise_linux::hugepages::map::PageSizes;
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::sys::anonymous::{Anonymous, Pages};
use pagewise_model::units::Bytes;

impl Bench {
    /// Memory with pages of one size, all of it touched.
    pub fn memory(&mut self, size: Bytes, page: Bytes) -> Result<Anonymous> {
        let pages = match page == self.sizes.huge {
            true => Pages::Huge,
            false => Pages::Base,
        };
        let huge = as_index(self.sizes.huge.0);
        let length = as_index(size.0).next_multiple_of(huge);
        let mut memory = Anonymous::map(length, huge, pages)
            .with_context(|| format!("cannot map {size} for the probe"))?;
        touch(&mut memory, 0, length, self.sizes);
        if pages == Pages::Huge {
            self.make_huge(&memory, length);
        }
        Ok(memory)
    }

    /// Collapses the memory if faults gave base pages; notes what stays small.
    pub fn make_huge(&mut self, memory: &Anonymous, length: usize) {
        // If this fails, the map shows it.
        let _ = memory.collapse(0, length);
        let small = small_slots(memory, length, self.sizes);
        if small > 0 {
            let note = format!(
                "{small} of {} stretches could not be put into huge pages (too little free \
                 contiguous memory, or huge pages forbidden): figures for huge pages include base pages.",
                length / as_index(self.sizes.huge.0)
            );
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}

/// Writes a word into each base page.
pub fn touch(memory: &mut Anonymous, from: usize, length: usize, sizes: PageSizes) {
    let step = as_index(sizes.base.0 / 8);
    let words = memory.words_mut();
    for at in (from / 8..(from + length) / 8).step_by(step) {
        words[at] = 1;
    }
}

/// Slots of our own memory that no huge page maps; all of them if the map cannot be read.
fn small_slots(memory: &Anonymous, length: usize, sizes: PageSizes) -> usize {
    let slots = length / as_index(sizes.huge.0);
    let me = i32::try_from(std::process::id()).unwrap_or(0);
    let Ok(target) = Target::open(&ProcRoot::default(), me, sizes) else {
        return 0;
    };
    (0..slots)
        .filter(|&slot| {
            let address = memory.address() + slot as u64 * sizes.huge.0;
            !target.slot(address).is_ok_and(|slot| slot.huge)
        })
        .count()
}
