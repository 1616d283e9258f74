//! The huge-page map of a process: `/proc/PID/smaps` shows what may be changed, `PAGEMAP_SCAN`
//! which pages are where.

use crate::proc::{ProcRoot, SmapsEntry, region_kind};
use crate::pseudo_file;
use crate::sys::page_map::{self, PageRun, category};
use pagewise_model::findings::RegionKind;
use pagewise_model::huge_pages::{Area, HugeMap, Obstacle, Slot};
use pagewise_model::units::Bytes;
use std::fs::File;
use std::io;
use std::path::Path;

/// Page sizes of a huge-page map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSizes {
    /// Base page.
    pub base: Bytes,
    /// Huge page at PMD level.
    pub huge: Bytes,
}

/// Why a process's page sizes cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel was built without transparent huge pages.
    #[error(
        "this kernel has no transparent huge pages ({path} is missing): it was built without \
         CONFIG_TRANSPARENT_HUGEPAGE"
    )]
    NoHugePages {
        /// The missing file.
        path: String,
    },
    /// The process ended.
    #[error("process {0} is gone")]
    Gone(i32),
    /// `/proc/PID/pagemap` cannot be opened.
    #[error(
        "cannot read the page map of process {pid}: {source}; run as its user with \
         CAP_SYS_PTRACE, or as root"
    )]
    PageMap {
        /// Process.
        pid: i32,
        /// The kernel's reason.
        source: io::Error,
    },
    /// `PAGEMAP_SCAN` failed.
    #[error(
        "the kernel cannot scan page maps ({0}): PAGEMAP_SCAN needs Linux 6.7, and without it no \
         change of a page's size could be verified"
    )]
    Scan(#[source] io::Error),
    /// `pidfd_open(2)` failed.
    #[error("cannot open process {pid}: {source}")]
    Hold {
        /// Process.
        pid: i32,
        /// The kernel's reason.
        source: io::Error,
    },
    /// A file of `/proc` could not be read.
    #[error(transparent)]
    Proc(#[from] pseudo_file::Error),
}

impl PageSizes {
    /// Sizes of the machine whose sysfs is at `sys`.
    ///
    /// # Errors
    /// [`Error::NoHugePages`].
    pub fn read(sys: &Path) -> Result<Self, Error> {
        let path = sys.join("kernel/mm/transparent_hugepage/hpage_pmd_size");
        let huge = pseudo_file::number(&path)?;
        let huge = huge.filter(|&size| size > 0).ok_or(Error::NoHugePages {
            path: path.display().to_string(),
        })?;
        Ok(Self {
            base: Bytes(crate::sys::machine::page_size()),
            huge: Bytes(huge),
        })
    }
}

/// The map of process `pid`, whose page map is open as `pagemap`. Costs the kernel some 2 ms for
/// each GiB of mapped memory (smaps) and 25 to 500 µs (scan).
///
/// # Errors
/// [`Error::Gone`], [`Error::Proc`], [`Error::Scan`].
pub fn read(proc: &ProcRoot, pid: i32, pagemap: &File, sizes: PageSizes) -> Result<HugeMap, Error> {
    let mappings = proc.smaps(pid)?.ok_or(Error::Gone(pid))?;
    let mut areas: Vec<Area> = mappings
        .iter()
        .filter_map(|mapping| area(mapping, sizes))
        .collect();
    for area in &mut areas {
        refresh(area, pagemap, sizes)?;
    }
    Ok(HugeMap {
        huge_page: sizes.huge,
        base_page: sizes.base,
        areas,
    })
}

/// Reads the slots of a known area again.
///
/// # Errors
/// [`Error::Scan`].
pub fn refresh(area: &mut Area, pagemap: &File, sizes: PageSizes) -> Result<(), Error> {
    let end = area.address(area.slots.len(), sizes.huge);
    let mut runs = Vec::new();
    page_map::scan(pagemap, area.first_slot, end, &mut runs).map_err(Error::Scan)?;
    area.slots.fill(Slot::default());
    for run in &runs {
        put(run, area, sizes);
    }
    Ok(())
}

/// Current state of the slot at `address`.
///
/// # Errors
/// [`Error::Scan`].
pub fn slot_at(pagemap: &File, address: u64, sizes: PageSizes) -> Result<Slot, Error> {
    let mut area = Area {
        start: address,
        end: address + sizes.huge.0,
        region: RegionKind::Unknown,
        path: String::new(),
        advised: false,
        obstacle: None,
        first_slot: address,
        slots: vec![Slot::default()],
    };
    refresh(&mut area, pagemap, sizes)?;
    Ok(area.slots[0])
}

/// Adds a run of equal pages to the slots that it touches.
fn put(run: &PageRun, area: &mut Area, sizes: PageSizes) {
    let mut at = run.start.max(area.first_slot);
    while at < run.end {
        let Ok(index) = usize::try_from((at - area.first_slot) / sizes.huge.0) else {
            return;
        };
        let slot_end = area.address(index + 1, sizes.huge);
        let Some(slot) = area.slots.get_mut(index) else {
            return;
        };
        let end = run.end.min(slot_end);
        let pages = u32::try_from((end - at) / sizes.base.0).unwrap_or(u32::MAX);
        let is = |bit| run.categories & bit != 0;
        match () {
            // The huge zero page maps no memory of its own.
            () if is(category::ZERO) => slot.zero += pages,
            () if is(category::SWAPPED) => slot.swapped += pages,
            () => {
                slot.present += pages;
                slot.huge |= is(category::HUGE);
            }
        }
        at = end;
    }
}

/// The area of a mapping that holds at least one slot of memory that could be anonymous or shared.
fn area(mapping: &SmapsEntry, sizes: PageSizes) -> Option<Area> {
    let range = &mapping.entry.mapping;
    let first_slot = range.start.checked_next_multiple_of(sizes.huge.0)?;
    let slots = range.end.checked_sub(first_slot)? / sizes.huge.0;
    if slots == 0 || range.path.starts_with("[v") {
        return None;
    }
    let region = region_kind(&mapping.entry);
    let has = |flag: &str| mapping.flags.iter().any(|found| found == flag);
    Some(Area {
        start: range.start,
        end: range.end,
        region,
        path: range.path.to_string(),
        advised: has("hg"),
        obstacle: obstacle(region, has),
        first_slot,
        slots: vec![Slot::default(); usize::try_from(slots).ok()?],
    })
}

fn obstacle(region: RegionKind, has: impl Fn(&str) -> bool) -> Option<Obstacle> {
    // Flags as in `show_smap_vma_flags`, fs/proc/task_mmu.c of Linux 6.18.
    match region {
        _ if has("ht") => Some(Obstacle::Hugetlb),
        _ if has("pf") || has("io") || has("mm") => Some(Obstacle::Device),
        _ if has("um") || has("uw") || has("ui") => Some(Obstacle::UserFault),
        _ if has("lo") => Some(Obstacle::Locked),
        _ if has("nh") => Some(Obstacle::NoHugePages),
        RegionKind::FilePrivate | RegionKind::FileShared | RegionKind::Unknown => {
            Some(Obstacle::File)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: PageSizes = PageSizes {
        base: Bytes(4096),
        huge: Bytes(2 << 20),
    };

    fn mapping(line: &str, flags: &str) -> SmapsEntry {
        let folder = tempfile::tempdir().unwrap();
        let process = folder.path().join("7");
        std::fs::create_dir(&process).unwrap();
        let text = format!("{line}\nRss: 0 kB\nVmFlags: {flags}\n");
        std::fs::write(process.join("smaps"), text).unwrap();
        let entries = ProcRoot::at(folder.path()).smaps(7).unwrap().unwrap();
        entries.into_iter().next().unwrap()
    }

    #[test]
    fn a_mapping_without_an_aligned_stretch_has_no_slots() {
        let small = mapping("00201000-00400000 rw-p 00000000 00:00 0", "rd wr");
        assert_eq!(area(&small, SIZES), None);
        let fits = mapping("00201000-00601000 rw-p 00000000 00:00 0", "rd wr hg");
        let fits = area(&fits, SIZES).unwrap();
        assert_eq!((fits.first_slot, fits.slots.len()), (0x40_0000, 1));
        assert!(fits.advised && fits.obstacle.is_none());
        assert_eq!(fits.outside_slots(SIZES.huge), Bytes(2 << 20));
    }

    #[test]
    fn what_must_be_left_alone_is_named() {
        let line = "00400000-00800000 rw-p 00000000 00:00 0";
        for (flags, expected) in [
            ("rd wr lo", Some(Obstacle::Locked)),
            ("rd wr nh", Some(Obstacle::NoHugePages)),
            ("rd wr um", Some(Obstacle::UserFault)),
            ("rd wr ht", Some(Obstacle::Hugetlb)),
            ("rd wr pf io", Some(Obstacle::Device)),
            ("rd wr ac", None),
        ] {
            assert_eq!(
                area(&mapping(line, flags), SIZES).unwrap().obstacle,
                expected,
                "{flags}"
            );
        }
        let file = mapping(
            "00400000-00800000 r--p 00000000 fe:00 5    /usr/lib/x.so",
            "rd",
        );
        assert_eq!(area(&file, SIZES).unwrap().obstacle, Some(Obstacle::File));
    }

    #[test]
    fn runs_fall_into_their_slots() {
        let line = "00400000-00a00000 rw-p 00000000 00:00 0";
        let mut area = area(&mapping(line, "rd wr"), SIZES).unwrap();
        let run = |start, end, categories| PageRun {
            start,
            end,
            categories,
        };
        for run in [
            run(0x40_0000, 0x60_0000, category::PRESENT | category::HUGE),
            // Crosses the border of two slots.
            run(0x60_3000, 0x80_1000, category::PRESENT),
            run(0x80_1000, 0x80_3000, category::PRESENT | category::ZERO),
            run(0x80_3000, 0x80_4000, category::SWAPPED),
        ] {
            put(&run, &mut area, SIZES);
        }
        let slot = |huge, present, zero, swapped| Slot {
            huge,
            present,
            zero,
            swapped,
        };
        let expected = [
            slot(true, 512, 0, 0),
            slot(false, 509, 0, 0),
            slot(false, 1, 2, 1),
        ];
        assert_eq!(area.slots, expected);
    }
}
