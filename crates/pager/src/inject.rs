//! Faults for tests: kernel capabilities that are treated as absent, and transfers of the store
//! that fail.
//!
//! A library with debug assertions or the feature `inject` has this module; any other has
//! `inject_absent.rs` instead, with neither the environment variables nor the code.

use crate::page::PAGE_BYTES;
use crate::store::transfer::{Operation, StoreError, Transfer, error};
use crate::sys::progress::Progress;
use crate::sys::{self, environment};
use alloc::string::String;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whether a test disables `name` (`PAGEWISE_PAGER_WITHOUT`, names separated by commas). Allocates:
/// only for the start.
#[must_use]
pub fn takes_away(name: &str) -> bool {
    let all = environment::variable("PAGEWISE_PAGER_WITHOUT").unwrap_or_default();
    all.split(',').any(|one| one == name)
}

/// Whether the kernel fails to report moves (`PAGEWISE_PAGER_WITHOUT=told_moves`).
static FORGETS_MOVES: AtomicBool = AtomicBool::new(false);

/// Whether faults take their time between a page and its neighbours (`PAGEWISE_PAGER_WITHOUT=haste`).
static DAWDLES: AtomicBool = AtomicBool::new(false);

/// Reads the settings of [`moved`] and [`dawdle`] at the start.
pub fn prepare() {
    FORGETS_MOVES.store(takes_away("told_moves"), Ordering::Relaxed);
    DAWDLES.store(takes_away("haste"), Ordering::Relaxed);
}

/// A page of a fault is locked, and its neighbours are about to be. Where faults take their time, every
/// 16th waits for 20 ms, as on a machine with more to do, so that others come in between.
pub fn dawdle() {
    /// Calls so far.
    static CALLS: AtomicU64 = AtomicU64::new(0);
    if DAWDLES.load(Ordering::Relaxed) && CALLS.fetch_add(1, Ordering::Relaxed).is_multiple_of(16) {
        sys::futex_wait(&Default::default(), 0, Some(20_000_000));
    }
}

/// The result of a move of `wanted` bytes by `really`. If moves are to be forgotten, every 16th ends
/// early, and the last page that it moved is not reported, as Linux 6.18 occasionally does when it
/// swaps: one of the first half, or the last one of all.
pub fn moved(wanted: u64, really: impl FnOnce(u64) -> Progress) -> Progress {
    /// Moves so far.
    static MOVES: AtomicU64 = AtomicU64::new(0);
    if !FORGETS_MOVES.load(Ordering::Relaxed) {
        return really(wanted);
    }
    let page = PAGE_BYTES as u64;
    let part = match MOVES.fetch_add(1, Ordering::Relaxed) % 32 {
        15 => (wanted / 2).next_multiple_of(page),
        31 => wanted,
        _ => return really(wanted),
    };
    let progress = really(part);
    if progress.errno != 0 {
        return progress;
    }
    let bytes = part - page;
    Progress {
        bytes,
        errno: if bytes == 0 {
            libc::EEXIST
        } else {
            libc::EAGAIN
        },
    }
}

/// The description of faults to inject into the store (`PAGEWISE_STORE_FAULTS`).
#[must_use]
pub fn store_faults() -> Option<String> {
    environment::variable("PAGEWISE_STORE_FAULTS")
}

/// The required form of a description.
pub const FORM: &str = "PAGEWISE_STORE_FAULTS is not a list of OPERATION:KIND@N or OPERATION:KIND%N \
                        (operations read, write; kinds eio, enospc, short, flip, slow, panic)";

/// Largest number of rules in a description.
const MAX_RULES: usize = 8;

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Fails with this `errno`.
    Error(i32),
    /// Transfers half of the bytes, then the file seems to end.
    Short,
    /// Changes one bit.
    Flip,
    /// Takes 20 ms longer.
    Slow,
    /// Panics, on the thread that does it.
    Panic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// The nth and all following ones, counted from 1.
    From(u64),
    /// Every nth.
    Each(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rule {
    operation: Operation,
    kind: Kind,
    when: When,
}

/// Parsed rules, such as `write:enospc@100,read:flip%50`, that make the device below the checksums
/// fail, and the count of each operation.
#[derive(Debug, Default)]
pub struct Injected {
    rules: [Option<Rule>; MAX_RULES],
    reads: AtomicU64,
    writes: AtomicU64,
}

impl Injected {
    /// Parses `OPERATION:KIND@N` (from the Nth on) and `OPERATION:KIND%N` (every Nth), separated by
    /// commas; operations `read`, `write`; kinds `eio`, `enospc`, `short`, `flip`, `slow`, `panic`.
    /// `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut injected = Injected::default();
        let mut places = injected.rules.iter_mut();
        for rule in text
            .split(',')
            .map(str::trim)
            .filter(|rule| !rule.is_empty())
        {
            *places.next()? = Some(parse_rule(rule)?);
        }
        Some(injected)
    }

    /// Runs `plain`, which does `transfer`, or fails as the rules demand.
    ///
    /// # Safety
    /// The transfer's memory belongs to the caller for the whole call.
    pub unsafe fn transfer(
        &self,
        operation: Operation,
        transfer: &Transfer,
        plain: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let wrong = self.next(operation);
        match wrong {
            Some(Kind::Error(errno)) => return Err(error(-(errno as isize))),
            Some(Kind::Short) => return Err(StoreError::Short),
            Some(Kind::Slow) => sys::futex_wait(&Default::default(), 0, Some(20_000_000)),
            Some(Kind::Panic) => panic!("a test wants it"),
            Some(Kind::Flip) | None => {}
        }
        plain()?;
        if wrong == Some(Kind::Flip) && operation == Operation::Read {
            // SAFETY: inside the caller's memory, which was just filled.
            unsafe { *transfer.memory.add(transfer.bytes() / 3) ^= 0x10 };
        }
        Ok(())
    }

    /// Counts an operation and returns how it must fail.
    fn next(&self, operation: Operation) -> Option<Kind> {
        let counter = match operation {
            Operation::Read => &self.reads,
            Operation::Write => &self.writes,
        };
        let number = counter.fetch_add(1, Ordering::Relaxed) + 1;
        let due = |rule: &&Rule| {
            rule.operation == operation
                && match rule.when {
                    When::From(first) => number >= first,
                    When::Each(period) => number.is_multiple_of(period),
                }
        };
        self.rules.iter().flatten().find(due).map(|rule| rule.kind)
    }
}

fn parse_rule(rule: &str) -> Option<Rule> {
    let (operation, rest) = rule.split_once(':')?;
    let (at, sign) = rest
        .char_indices()
        .find(|(_, sign)| matches!(sign, '@' | '%'))?;
    let number: u64 = rest
        .get(at + 1..)?
        .parse()
        .ok()
        .filter(|number| *number > 0)?;
    Some(Rule {
        operation: match operation {
            "read" => Operation::Read,
            "write" => Operation::Write,
            _ => return None,
        },
        kind: match rest.get(..at)? {
            "eio" => Kind::Error(libc::EIO),
            "enospc" => Kind::Error(libc::ENOSPC),
            "short" => Kind::Short,
            "flip" => Kind::Flip,
            "slow" => Kind::Slow,
            "panic" => Kind::Panic,
            _ => return None,
        },
        when: if sign == '@' {
            When::From(number)
        } else {
            When::Each(number)
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_hit_the_operations_they_name() {
        let injected = Injected::parse("write:enospc@3, read:flip%2").expect("well-formed");
        let writes: Vec<_> = (0..4).map(|_| injected.next(Operation::Write)).collect();
        let full = Some(Kind::Error(libc::ENOSPC));
        assert_eq!(writes, [None, None, full, full]);
        let reads: Vec<_> = (0..4).map(|_| injected.next(Operation::Read)).collect();
        assert_eq!(reads, [None, Some(Kind::Flip), None, Some(Kind::Flip)]);
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in [
            "read",
            "read:eio",
            "read:eio@0",
            "seek:eio@1",
            "read:bad@1",
            "read:eio@x",
        ] {
            assert!(Injected::parse(text).is_none(), "{text}");
        }
        assert!(Injected::parse("").is_some());
    }
}
