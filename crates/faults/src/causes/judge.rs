//! The verdict on a fault, and the resulting state of its page.

use super::Attributor;
use super::classify::{Sight, by_density, refault_by};
use super::density::Density;
use super::pages::{Chunk, Huge, PageState, PageWord, Route};
use super::process::Verdict;
use super::regions::{HugeWish, Region, is_malloc_like, is_private_anonymous};
use super::roles::{Coverage, Role};
use super::syscalls::ErrorCode;
use super::tally::magnitude;
use pagewise_model::findings::{Cause, RegionKind};

/// First address of the kernel's half on 64-bit machines.
const KERNEL_HALF: u64 = 1 << 63;

/// One fault to be judged.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) pid: i32,
    pub(super) address: u64,
    pub(super) role: Role,
    pub(super) code: Option<ErrorCode>,
    pub(super) period: u64,
}

/// The result.
#[derive(Clone, Copy)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) region: Option<Region>,
    pub(super) inferred: bool,
    pub(super) huge_candidate: Option<u32>,
}

impl Judged {
    fn plain(verdict: Verdict, region: Option<Region>) -> Self {
        Self {
            verdict,
            region,
            inferred: false,
            huge_candidate: None,
        }
    }
}

/// A first touch that may have allocated a huge page.
#[derive(Clone, Copy, Debug)]
pub(super) struct HugeCandidate {
    pub(super) cell: Option<super::tally::Cell>,
    pub(super) latency: Option<u64>,
    pub(super) refuted: bool,
}

impl Attributor {
    pub(super) fn judge(&mut self, case: Case) -> Judged {
        // Nothing is mapped at zero (vm.mmap_min_addr): the address was not recorded.
        if case.address >= KERNEL_HALF || case.address == 0 {
            return Judged::plain(Verdict::sure(Cause::Unknown), None);
        }
        let process = self.process(case.pid);
        let region = self.processes[process]
            .region_at(case.address)
            .map(|(_, region)| region);
        // Without mappings and calls, no page's life is known.
        if !self.roles.sees_releases && self.processes[process].regions.is_empty() {
            return Judged::plain(Verdict::sure(Cause::Unknown), None);
        }
        match (self.roles.coverage, case.role) {
            (Coverage::Every, _) => self.judge_exactly(process, case, region),
            (Coverage::Sampled, Role::SampledFault) => {
                Judged::plain(self.judge_sample(process, case, region), region)
            }
            (Coverage::Sampled, _) => {
                Judged::plain(self.judge_window(process, case, region), region)
            }
        }
    }

    /// Judges a fault of a latency window. Its page's state is not changed: windows see each fault,
    /// so their pages would distort the count of distinct pages among evenly sampled ones.
    fn judge_window(&mut self, process: usize, case: Case, region: Option<Region>) -> Verdict {
        let (sight, density) = self.sight(process, case, region);
        let process = &mut self.processes[process];
        process.density.touched(case.period);
        let page = case.address >> self.page_shift;
        process.pages.chunk_mut(page).density.touched(case.period);
        if self.roles.sees_releases {
            by_density(
                sight,
                density,
                region.map_or(0, |region| region.shared_permille),
            )
        } else {
            Verdict::sure(first_cause(sight))
        }
    }

    fn sight(&mut self, process: usize, case: Case, region: Option<Region>) -> (Sight, Density) {
        let page = case.address >> self.page_shift;
        let kind = region.map_or(RegionKind::Unknown, |region| region.kind);
        let is_last = self.is_last_of_kin(process);
        let process = &mut self.processes[process];
        let (heap_epoch, whole) = (process.heap_epoch, process.density);
        let chunk = process.pages.chunk_mut(page);
        let word = chunk.get(page);
        let sight = Sight {
            word,
            region: kind,
            writable: region.is_none_or(|region| region.writable),
            code: case.code,
            remapped: word.mark() != epoch_of(kind, heap_epoch, chunk),
            sees_releases: self.roles.sees_releases,
            is_last,
        };
        let density = if chunk.density.is_firm() {
            chunk.density
        } else {
            whole
        };
        (sight, density)
    }

    fn judge_exactly(&mut self, process: usize, case: Case, region: Option<Region>) -> Judged {
        let page = case.address >> self.page_shift;
        let (sight, _) = self.sight(process, case, region);
        let ruling = sight.rule();
        let may_be_huge = ruling.cause == Cause::FirstTouch
            && is_malloc_like(sight.region)
            && self.is_huge_eligible(process, page, region);
        let number = u32::try_from(self.huge.len()).unwrap_or(u32::MAX);
        let process = &mut self.processes[process];
        let heap_epoch = process.heap_epoch;
        let chunk = process.pages.chunk_mut(page);
        let absent = !sight.word.state().is_held();
        if let (Huge::Candidate(earlier), true) = (chunk.huge, absent) {
            chunk.huge = Huge::Refuted;
            if let Some(candidate) = self.huge.get_mut(earlier as usize) {
                candidate.refuted = true;
            }
        }
        let begins_huge = may_be_huge && chunk.is_idle() && chunk.huge == Huge::No;
        if begins_huge {
            chunk.huge = Huge::Candidate(number);
            self.huge.push(HugeCandidate {
                cell: None,
                latency: None,
                refuted: false,
            });
        }
        let mark = epoch_of(sight.region, heap_epoch, chunk);
        chunk.set(page, PageWord::new(ruling.next, mark));
        Judged {
            verdict: Verdict::sure(ruling.cause),
            region,
            inferred: ruling.inferred,
            huge_candidate: begins_huge.then_some(number),
        }
    }

    /// Whether the kernel may serve a first touch here with a huge page: they are enabled (or
    /// requested), and the aligned stretch is in private anonymous memory. Checked only while the
    /// stretch is empty, and so rarely.
    fn is_huge_eligible(&mut self, process: usize, page: u64, region: Option<Region>) -> bool {
        let Some(region) = region else {
            return false;
        };
        if !self.gets_huge_pages(region) || !self.processes[process].pages.chunk_mut(page).is_idle()
        {
            return false;
        }
        let start = (page & !(super::pages::CHUNK_PAGES - 1)) << self.page_shift;
        let length = super::pages::CHUNK_PAGES << self.page_shift;
        self.processes[process]
            .regions
            .is_anonymous_throughout(start, start + length)
    }

    /// Whether the kernel allocates huge pages for private memory of this kind, given the system
    /// settings and the program's own advice.
    pub(super) fn gets_huge_pages(&self, region: Region) -> bool {
        let wanted = match region.huge {
            HugeWish::Refused => false,
            HugeWish::Wanted => self.huge_pages.on_request,
            HugeWish::None => self.huge_pages.always,
        };
        wanted && is_malloc_like(region.kind)
    }

    /// Judges a sampled fault. With recorded releases the range's history decides; without them
    /// distinct pages are counted (a page's mark then contains the rates at which it was seen) and
    /// the findings identify churn by how often pages repeat.
    fn judge_sample(&mut self, process: usize, case: Case, region: Option<Region>) -> Verdict {
        let page = case.address >> self.page_shift;
        let (sight, density) = self.sight(process, case, region);
        let kind = sight.region;
        let releases = self.roles.sees_releases;
        let shared = region.map_or(0, |region| region.shared_permille);
        let mut verdict = match releases {
            true => by_density(sight, density, shared),
            false => sight.first_of_a_fork(first_cause(sight), shared),
        };
        let mut mark = sight.word.mark();
        if is_private_anonymous(kind) && !releases {
            if let Some(chance) = self.mapped_before(process, case, region) {
                verdict.instead = Some((refault_by(Route::Munmap), chance));
                self.tally.tell_by_records(kind, case.period, chance);
            } else {
                let rate = 1 << magnitude(case.period);
                let before = match mark & rate {
                    0 => 0,
                    _ => self.processes[process].see_again(page, rate),
                };
                self.tally.census_of(kind, case.period, before);
                mark |= rate;
            }
        }
        let process = &mut self.processes[process];
        process.density.touched(case.period);
        let chunk = process.pages.chunk_mut(page);
        chunk.density.touched(case.period);
        chunk.set(page, PageWord::new(PageState::Present, mark));
        verdict
    }
}

impl Attributor {
    /// The chance that a fault's page had been touched before its memory was mapped again; `None`
    /// if it was not mapped again.
    fn mapped_before(&mut self, process: usize, case: Case, region: Option<Region>) -> Option<f64> {
        let remaps = &mut self.processes[process].remaps;
        remaps.touch(case.address, region?, case.period)
    }
}

/// The cause of a page's first fault.
fn first_cause(sight: Sight) -> Cause {
    let untouched = Sight {
        word: PageWord::new(PageState::Untouched, 0),
        ..sight
    };
    untouched.rule().cause
}

/// The newest mapping record that covers a page of this kind.
fn epoch_of(kind: RegionKind, heap_epoch: u16, chunk: &Chunk) -> u16 {
    if kind == RegionKind::Heap {
        heap_epoch
    } else {
        chunk.epoch
    }
}
