//! The attributor compared with a page-by-page twin that keeps one map entry per page and reads
//! like the definitions of the causes.

use super::streams::{PAGE, Recorded, Stream, causes};
use crate::causes::MmCall;
use pagewise_model::findings::Cause;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

/// The next step of a synthetic program. Numbers are pages.
#[derive(Clone, Debug)]
enum Step {
    Touch { child: bool, page: u64 },
    Unmap { child: bool, first: u64, pages: u64 },
    Remap { child: bool, first: u64, pages: u64 },
    Dontneed { child: bool, first: u64, pages: u64 },
    Free { child: bool, first: u64, pages: u64 },
    PageOut { child: bool, first: u64, pages: u64 },
    Fork,
}

const BASE: u64 = 0x7f00_0000_0000;
/// Crosses three chunks of 512 pages.
const SPAN: u64 = 1200;

#[derive(Clone, Copy, PartialEq)]
enum Page {
    Held { faults: u32 },
    Shared,
    Swapped,
    Gone(Cause),
}

#[derive(Clone, Default)]
struct Naive {
    pages: HashMap<u64, Page>,
}

impl Naive {
    fn touch(&mut self, page: u64) -> Cause {
        let (cause, next) = match self.pages.get(&page) {
            None => (Cause::FirstTouch, Page::Held { faults: 1 }),
            Some(Page::Gone(cause)) => (*cause, Page::Held { faults: 1 }),
            Some(Page::Shared) => (Cause::CopyOnWrite, Page::Held { faults: 2 }),
            Some(Page::Swapped) => (Cause::SwapIn, Page::Held { faults: 2 }),
            Some(Page::Held { faults: 1 }) => (Cause::WriteAfterRead, Page::Held { faults: 2 }),
            Some(Page::Held { .. }) => (Cause::WriteProtect, Page::Held { faults: 2 }),
        };
        self.pages.insert(page, next);
        cause
    }

    fn change(&mut self, first: u64, pages: u64, to: Page) {
        for page in first..first + pages {
            let Some(held) = self.pages.get_mut(&page) else {
                continue;
            };
            *held = match *held {
                // Freed pages may have new data without any fault, until they are finally dropped.
                Page::Gone(Cause::RefaultAfterFree) if to != Page::Swapped => to,
                gone @ Page::Gone(_) => gone,
                _ => to,
            };
        }
    }

    fn fork(&mut self) -> Self {
        for page in self.pages.values_mut() {
            if matches!(page, Page::Held { .. }) {
                *page = Page::Shared;
            }
        }
        self.clone()
    }
}

fn step() -> impl Strategy<Value = Step> {
    let range = (any::<bool>(), 0..SPAN, 1..400_u64);
    prop_oneof![
        8 => (any::<bool>(), 0..SPAN).prop_map(|(child, page)| Step::Touch { child, page }),
        1 => range.clone().prop_map(|(child, first, pages)| Step::Unmap { child, first, pages }),
        1 => range.clone().prop_map(|(child, first, pages)| Step::Remap { child, first, pages }),
        1 => range.clone().prop_map(|(child, first, pages)| Step::Dontneed { child, first, pages }),
        1 => range.clone().prop_map(|(child, first, pages)| Step::Free { child, first, pages }),
        1 => range.prop_map(|(child, first, pages)| Step::PageOut { child, first, pages }),
        1 => Just(Step::Fork),
    ]
}

/// Plays the steps into both. The child does nothing before the first fork; a later fork replaces
/// it, as a new process with the same number would.
fn play(steps: &[Step], stream: &mut Stream) -> BTreeMap<Cause, u64> {
    let (mut parent, mut child): (Naive, Option<Naive>) = (Naive::default(), None);
    let mut truth = BTreeMap::new();
    stream.map(1, BASE, SPAN + 400);
    for step in steps {
        let of_child = match step {
            Step::Touch { child, .. }
            | Step::Unmap { child, .. }
            | Step::Remap { child, .. }
            | Step::Dontneed { child, .. }
            | Step::Free { child, .. }
            | Step::PageOut { child, .. } => *child,
            Step::Fork => false,
        };
        if of_child && child.is_none() {
            continue;
        }
        let pid = if of_child { 2 } else { 1 };
        let naive = match &mut child {
            Some(child) if of_child => child,
            _ => &mut parent,
        };
        match *step {
            Step::Touch { page, .. } => {
                *truth.entry(naive.touch(page)).or_default() += 1;
                stream.fault(pid, BASE + page * PAGE);
            }
            Step::Unmap { first, pages, .. } | Step::Remap { first, pages, .. } => {
                naive.change(first, pages, Page::Gone(Cause::RefaultAfterMunmap));
                let start = BASE + first * PAGE;
                if matches!(step, Step::Unmap { .. }) {
                    stream.unmap(pid, start, pages);
                    stream.map(pid, start, pages);
                } else {
                    let result = i64::try_from(start).unwrap();
                    let args = [start, pages * PAGE, 3, 0x32, u64::MAX, 0];
                    stream.call(pid, MmCall::Mmap, &args, result);
                }
            }
            Step::Dontneed { first, pages, .. } => {
                naive.change(first, pages, Page::Gone(Cause::RefaultAfterDontneed));
                stream.advise(pid, BASE + first * PAGE, pages, 4);
            }
            Step::Free { first, pages, .. } => {
                naive.change(first, pages, Page::Gone(Cause::RefaultAfterFree));
                stream.advise(pid, BASE + first * PAGE, pages, 8);
            }
            Step::PageOut { first, pages, .. } => {
                naive.change(first, pages, Page::Swapped);
                stream.advise(pid, BASE + first * PAGE, pages, 21);
            }
            Step::Fork => {
                child = Some(parent.fork());
                stream.fork(1, 2);
            }
        }
    }
    truth
}

proptest! {
    #[test]
    fn every_page_gets_the_cause_that_its_own_history_gives(
        steps in prop::collection::vec(step(), 1..300)
    ) {
        let mut stream = Stream::new(Recorded::Fully);
        let truth = play(&steps, &mut stream);
        let got: BTreeMap<Cause, u64> = causes(&stream.finish()).into_iter().collect();
        prop_assert_eq!(got, truth);
    }
}
