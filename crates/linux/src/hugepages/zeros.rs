//! How much of a process's huge pages is in use: base pages that are all zeros were zeroed in vain.

use crate::proc::ProcRoot;
use pagewise_model::huge_pages::HugeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Huge pages sampled, and base pages in each: half a megabyte is read in all.
const HUGE_PAGES: usize = 8;
const BASE_PAGES: u64 = 16;

/// Share (0 to 1) of all-zero base pages in the huge pages of process `pid`, from a small, evenly
/// spaced sample; `None` if there are no huge pages or they may not be read. Only memory mapped by
/// a huge page is read, so reading causes no fault.
#[must_use]
pub fn zero_share(proc: &ProcRoot, pid: i32, map: &HugeMap) -> Option<f64> {
    let huge: Vec<u64> = map
        .areas
        .iter()
        .flat_map(|area| {
            let slots = area.slots.iter().enumerate();
            let huge = slots.filter(|(_, slot)| slot.huge);
            huge.map(|(at, _)| area.address(at, map.huge_page))
        })
        .collect();
    let memory = File::open(proc.process_path(pid, "mem")).ok()?;
    let base = map.base_page.0.max(1);
    let step = (map.huge_page.0 / BASE_PAGES / base).max(1) * base;
    let mut page = vec![0_u8; usize::try_from(base).ok()?];
    let (mut read, mut zeros) = (0_u32, 0_u32);
    for &start in huge.iter().step_by(huge.len().div_ceil(HUGE_PAGES).max(1)) {
        // The last base page of each step: programs write headers first.
        for at in (1..=BASE_PAGES).map(|nth| start + nth * step - base) {
            if memory.read_exact_at(&mut page, at).is_ok() {
                read += 1;
                zeros += u32::from(page.iter().all(|&byte| byte == 0));
            }
        }
    }
    (read > 0).then(|| f64::from(zeros) / f64::from(read))
}
