//! Faults on purpose: a description such as `write:enospc@100,read:flip%50` makes the device below
//! the checksums fail, so that tests see what really happens then.

use core::sync::atomic::{AtomicU64, Ordering};

/// Most rules of a description.
const MAX_RULES: usize = 8;

/// What an operation does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Fails with this `errno`.
    Error(i32),
    /// Transfers half of the bytes, then the file seems to end.
    Short,
    /// Changes one bit.
    Flip,
    /// Takes 20 ms longer.
    Slow,
}

/// Which operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// The nth and all that follow, counted from 1.
    From(u64),
    /// Each nth.
    Each(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rule {
    operation: Operation,
    kind: Kind,
    when: When,
}

/// Parsed rules and how far each operation has counted.
#[derive(Debug, Default)]
pub struct Injected {
    rules: [Option<Rule>; MAX_RULES],
    reads: AtomicU64,
    writes: AtomicU64,
}

impl Injected {
    /// Parses `OPERATION:KIND@N` (from the Nth on) and `OPERATION:KIND%N` (each Nth), separated by
    /// commas; operations `read`, `write`; kinds `eio`, `enospc`, `short`, `flip`, `slow`. `None`
    /// for anything else.
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

    /// Counts an operation and tells what it must do wrong.
    pub fn next(&self, operation: Operation) -> Option<Kind> {
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
