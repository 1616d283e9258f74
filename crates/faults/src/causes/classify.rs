//! Why a fault happened, from the state of its page and of the memory around it.

use super::density::Density;
use super::pages::{PageState, PageWord, Route};
use super::process::Verdict;
use super::syscalls::ErrorCode;
use pagewise_model::findings::{Cause, RegionKind};

/// The input of a verdict.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    pub(super) word: PageWord,
    pub(super) region: RegionKind,
    pub(super) writable: bool,
    pub(super) code: Option<ErrorCode>,
    /// A mapping record covered the page after it was last touched.
    pub(super) remapped: bool,
    /// Releases of memory are recorded.
    pub(super) sees_releases: bool,
    /// The processes that shared pages since a fork are gone: a write to one copies nothing.
    pub(super) is_last: bool,
}

/// A verdict when each fault is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ruling {
    pub(super) cause: Cause,
    pub(super) next: PageState,
    /// Concluded from mapping records, not from a recorded release.
    pub(super) inferred: bool,
}

/// The churn cause for a route.
#[must_use]
pub fn refault_by(route: Route) -> Cause {
    match route {
        Route::Munmap => Cause::RefaultAfterMunmap,
        Route::Brk => Cause::RefaultAfterBrk,
        Route::Dontneed => Cause::RefaultAfterDontneed,
        Route::Free => Cause::RefaultAfterFree,
    }
}

impl Sight {
    fn is_protection(self) -> Option<bool> {
        self.code.map(ErrorCode::is_protection)
    }

    fn is_write(self) -> Option<bool> {
        self.code.map(ErrorCode::is_write)
    }

    /// State of the page after a fault on fresh memory.
    fn fresh(self) -> PageState {
        match self.is_write() {
            Some(true) => PageState::Written,
            Some(false) => PageState::ReadOnly,
            None => PageState::Present,
        }
    }

    fn ruling(self, cause: Cause, next: PageState) -> Ruling {
        Ruling {
            cause,
            next,
            inferred: false,
        }
    }

    /// The cause of a fault when each fault is recorded.
    pub(super) fn rule(self) -> Ruling {
        let ruling = self.rule_among_kin();
        match ruling.cause {
            Cause::CopyOnWrite => Ruling {
                cause: self.copy(),
                ..ruling
            },
            _ => ruling,
        }
    }

    /// The cause of a write to a page that a fork made shared.
    pub(super) fn copy(self) -> Cause {
        match self.is_last {
            true => Cause::WriteProtect,
            false => Cause::CopyOnWrite,
        }
    }

    fn rule_among_kin(self) -> Ruling {
        match self.region {
            RegionKind::FilePrivate => self.private_file(),
            RegionKind::FileShared => self.shared(Cause::FileMinor),
            RegionKind::SharedAnonymous => self.shared(Cause::Shared),
            RegionKind::Hugetlb if self.word.state() == PageState::Untouched => {
                self.ruling(Cause::HugePage, self.fresh())
            }
            RegionKind::Stack if self.word.state() == PageState::Untouched => {
                self.ruling(Cause::StackGrowth, self.fresh())
            }
            _ => self.anonymous(),
        }
    }

    fn shared(self, first: Cause) -> Ruling {
        let cause = if self.is_protection() == Some(true) {
            Cause::WriteProtect
        } else {
            first
        };
        self.ruling(cause, self.fresh())
    }

    /// A private mapping of a file: a read maps the cached page, the first write copies it. A
    /// neighbouring fault may have mapped the page already (`fault_around_bytes`), so the first
    /// recorded fault may be a write to a present page.
    fn private_file(self) -> Ruling {
        let state = self.word.state();
        let copied = matches!(state, PageState::Written | PageState::CowShared);
        match (self.is_write(), self.is_protection()) {
            (Some(true), Some(true)) if state == PageState::CowShared => {
                self.ruling(Cause::CopyOnWrite, PageState::Written)
            }
            (Some(true), Some(true)) if state == PageState::Written => {
                self.ruling(Cause::WriteProtect, PageState::Written)
            }
            (Some(true), Some(false)) if copied => self.ruling(Cause::SwapIn, PageState::Written),
            (Some(true), Some(true)) => self.ruling(Cause::WriteAfterRead, PageState::Written),
            (Some(true), _) => self.ruling(Cause::FileCopy, PageState::Written),
            (Some(false), _) => self.ruling(Cause::FileMinor, PageState::ReadOnly),
            (None, _) => self.private_file_without_code(),
        }
    }

    /// Without error codes, a fault on writable private file memory (`.data`, `.got`) counts as a
    /// write, as in relocation, and one on read-only memory as a read.
    fn private_file_without_code(self) -> Ruling {
        match self.word.state() {
            PageState::CowShared if self.writable => {
                self.ruling(Cause::CopyOnWrite, PageState::Written)
            }
            PageState::Untouched if self.writable => {
                self.ruling(Cause::FileCopy, PageState::Written)
            }
            _ if self.writable => self.ruling(Cause::WriteAfterRead, PageState::Written),
            _ => self.ruling(Cause::FileMinor, PageState::ReadOnly),
        }
    }

    fn anonymous(self) -> Ruling {
        match self.word.state() {
            PageState::Untouched => self.ruling(Cause::FirstTouch, self.fresh()),
            PageState::Released(route) => self.ruling(refault_by(route), self.fresh()),
            PageState::Swapped => self.ruling(Cause::SwapIn, PageState::Written),
            held => self.held(held),
        }
    }

    /// A fault on a page that is resident, as far as is known.
    fn held(self, state: PageState) -> Ruling {
        if self.is_protection() == Some(true) {
            return self.protected(state);
        }
        if !self.sees_releases {
            return self.held_without_releases(state);
        }
        let cause = match (self.code, state) {
            // Not present although no recorded event freed it: the kernel reclaimed it.
            (Some(_), _) => Cause::SwapIn,
            (None, _) => self.protected(state).cause,
        };
        self.ruling(cause, PageState::Written)
    }

    fn protected(self, state: PageState) -> Ruling {
        let cause = match state {
            PageState::CowShared => Cause::CopyOnWrite,
            PageState::Present | PageState::ReadOnly => Cause::WriteAfterRead,
            _ => Cause::WriteProtect,
        };
        self.ruling(cause, PageState::Written)
    }

    /// Without recorded releases, a page that faults again was freed if a mapping record covered it
    /// since, if its memory is a thread arena (whose shrinking leaves no mapping record), or if it
    /// faults for the third time in one life: reading and then writing explain only two faults.
    fn held_without_releases(self, state: PageState) -> Ruling {
        let route = match self.region {
            RegionKind::ThreadArena => Some(Route::Dontneed),
            RegionKind::Heap if self.remapped => Some(Route::Brk),
            _ if self.remapped => Some(Route::Munmap),
            _ if state == PageState::Written || self.code.is_some() => Some(Route::Dontneed),
            _ => None,
        };
        match route {
            Some(route) => Ruling {
                cause: refault_by(route),
                // Unmapped memory begins a new life; advised memory keeps its history.
                next: if self.remapped {
                    self.fresh()
                } else {
                    PageState::Written
                },
                inferred: true,
            },
            None => self.protected(state),
        }
    }
}

/// A verdict when only some faults are recorded, so that a page's own history is mostly unseen: the
/// range's history and the touched share of it decide.
pub(super) fn by_density(sight: Sight, density: Density, shared_permille: u16) -> Verdict {
    let exact = sight.rule();
    match (sight.word.state(), exact.cause) {
        (PageState::Released(route), cause) if cause.is_churn() => Verdict {
            cause: first_touch_of(sight.region),
            instead: Some((refault_by(route), density.touched_before(sight.word.mark()))),
        },
        (PageState::Untouched, Cause::FirstTouch) if sight.is_protection() == Some(true) => {
            Verdict::sure(sight.copy())
        }
        (PageState::Untouched, cause) => sight.first_of_a_fork(cause, shared_permille),
        _ => Verdict::sure(exact.cause),
    }
}

impl Sight {
    /// A first fault in a stretch of which a fork shares this much: it may copy a page that the
    /// other process also has.
    pub(super) fn first_of_a_fork(self, cause: Cause, shared_permille: u16) -> Verdict {
        match (cause, shared_permille) {
            (Cause::FirstTouch, 1..) => Verdict {
                cause,
                instead: Some((self.copy(), f64::from(shared_permille) / 1000.0)),
            },
            _ => Verdict::sure(cause),
        }
    }
}

fn first_touch_of(region: RegionKind) -> Cause {
    if region == RegionKind::Stack {
        Cause::StackGrowth
    } else {
        Cause::FirstTouch
    }
}

/// The cause once the fault's end shows that it needed I/O. A page that was never touched cannot
/// come from swap: its fault waited for a lock and was retried, which the kernel also counts as
/// major (`mm_account_fault`, mm/memory.c: `FAULT_FLAG_TRIED`).
pub(super) fn when_major(cause: Cause, region: RegionKind, inherited: bool) -> Cause {
    match region {
        RegionKind::FilePrivate | RegionKind::FileShared | RegionKind::Unknown => Cause::FileMajor,
        RegionKind::SharedAnonymous => Cause::SwapIn,
        _ if matches!(cause, Cause::FirstTouch | Cause::StackGrowth) && !inherited => cause,
        _ if cause.is_churn() => cause,
        _ => Cause::SwapIn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(state: PageState, region: RegionKind, code: Option<u64>) -> Sight {
        Sight {
            word: PageWord::new(state, 1),
            region,
            writable: true,
            code: code.map(ErrorCode::from_bits),
            remapped: false,
            sees_releases: true,
            is_last: false,
        }
    }

    const WRITE: u64 = 2;
    const WRITE_PRESENT: u64 = 3;

    #[test]
    fn the_error_code_tells_a_copy_from_a_swap_in() {
        let page = |code| {
            sight(PageState::CowShared, RegionKind::Heap, Some(code))
                .rule()
                .cause
        };
        assert_eq!(page(WRITE_PRESENT), Cause::CopyOnWrite);
        assert_eq!(page(WRITE), Cause::SwapIn);
    }

    #[test]
    fn a_write_after_the_last_relative_ended_copies_nothing() {
        let page = |is_last| Sight {
            is_last,
            ..sight(PageState::CowShared, RegionKind::Heap, Some(WRITE_PRESENT))
        };
        assert_eq!(page(false).rule().cause, Cause::CopyOnWrite);
        assert_eq!(page(true).rule().cause, Cause::WriteProtect);
    }

    #[test]
    fn a_write_to_a_private_file_page_copies_it() {
        let page = |code| {
            sight(PageState::Untouched, RegionKind::FilePrivate, Some(code))
                .rule()
                .cause
        };
        assert_eq!(page(WRITE), Cause::FileCopy);
        assert_eq!(page(WRITE_PRESENT), Cause::WriteAfterRead);
        assert_eq!(page(0), Cause::FileMinor);
    }

    #[test]
    fn without_releases_the_third_fault_of_a_life_means_given_back() {
        let blind = |state| Sight {
            sees_releases: false,
            ..sight(state, RegionKind::Anonymous, None)
        };
        let second = blind(PageState::Present).rule();
        assert_eq!(
            (second.cause, second.inferred),
            (Cause::WriteAfterRead, false)
        );
        let third = blind(second.next).rule();
        assert_eq!(
            blind(third.next).rule(),
            third,
            "and so does each one after it"
        );
        assert_eq!(
            (third.cause, third.inferred),
            (Cause::RefaultAfterDontneed, true)
        );
    }

    #[test]
    fn a_retried_first_touch_is_no_swap_in() {
        assert_eq!(
            when_major(Cause::FirstTouch, RegionKind::Heap, false),
            Cause::FirstTouch
        );
        assert_eq!(
            when_major(Cause::FirstTouch, RegionKind::Heap, true),
            Cause::SwapIn
        );
        assert_eq!(
            when_major(Cause::FileMinor, RegionKind::FilePrivate, false),
            Cause::FileMajor
        );
    }

    #[test]
    fn a_page_from_swap_was_written() {
        for (region, code) in [
            (RegionKind::Heap, Some(WRITE)),
            (RegionKind::Heap, Some(0)),
            (RegionKind::Heap, None),
            (RegionKind::Stack, Some(WRITE)),
        ] {
            let ruling = sight(PageState::Swapped, region, code).rule();
            assert_eq!(
                (ruling.cause, ruling.next),
                (Cause::SwapIn, PageState::Written),
                "{region:?} {code:?}"
            );
        }
    }

    #[test]
    fn a_missing_private_copy_of_a_file_page_is_from_swap() {
        for state in [PageState::Written, PageState::CowShared] {
            let ruling = sight(state, RegionKind::FilePrivate, Some(WRITE)).rule();
            assert_eq!(ruling.cause, Cause::SwapIn, "{state:?}");
        }
        let uncopied = sight(PageState::ReadOnly, RegionKind::FilePrivate, Some(WRITE)).rule();
        assert_eq!(uncopied.cause, Cause::FileCopy);
    }

    #[test]
    fn a_held_page_that_is_missing_was_taken_by_the_kernel() {
        for state in [PageState::Written, PageState::Present, PageState::ReadOnly] {
            let missing = sight(state, RegionKind::Anonymous, Some(WRITE)).rule();
            assert_eq!(missing.cause, Cause::SwapIn, "{state:?}");
            let present = sight(state, RegionKind::Anonymous, Some(WRITE_PRESENT)).rule();
            assert_ne!(present.cause, Cause::SwapIn, "{state:?}");
        }
    }

    #[test]
    fn i_o_on_memory_without_a_file_comes_from_swap() {
        let cause = |cause, region| when_major(cause, region, false);
        assert_eq!(
            cause(Cause::Shared, RegionKind::SharedAnonymous),
            Cause::SwapIn
        );
        assert_eq!(cause(Cause::WriteProtect, RegionKind::Heap), Cause::SwapIn);
        assert_eq!(
            cause(Cause::RefaultAfterBrk, RegionKind::Heap),
            Cause::RefaultAfterBrk
        );
    }
}
