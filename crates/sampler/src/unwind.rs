//! The call stack of an allocation, by unwind tables whose rules are kept for each return address, so that
//! a frame that was seen before takes two loads. Code without tables (made at run time) is followed by its
//! frame pointers.

use crate::cfi::{Base, Rule};
use crate::sys;
use core::sync::atomic::{AtomicU64, Ordering};

/// Rules that are kept: 256 KiB of them.
const RULES: usize = 1 << 14;
/// The least that the kernel protects at once.
const PAGE: u64 = 4096;
/// Frames of code without tables are not larger: a chain of frame pointers that leads farther is none.
const LARGEST: u64 = 1 << 20;

/// Registers of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    /// The code address.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub bp: u64,
}

/// Rules by code address. All zeros is an empty one.
pub struct Rules([[AtomicU64; 2]; RULES]);

impl Rules {
    /// An empty one.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "large: static memory alone")]
    pub const fn new() -> Self {
        Self([const { [const { AtomicU64::new(0) }; 2] }; RULES])
    }

    fn place(&self, address: u64) -> &[AtomicU64; 2] {
        let mixed = address.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.0[(mixed >> (u64::BITS - RULES.trailing_zeros())) as usize]
    }

    /// A rule that is kept. The two words of a place are read and written without a lock: only those of
    /// one rule make the address together.
    fn get(&self, address: u64) -> Option<Rule> {
        let [mixed, rule] = self.place(address);
        let rule = rule.load(Ordering::Relaxed);
        let is_of_address = mixed.load(Ordering::Relaxed) ^ rule == address;
        (is_of_address && rule != 0).then(|| Rule::unpacked(rule))
    }

    fn keep(&self, address: u64, rule: Rule) {
        if let Some(packed) = rule.packed() {
            let [mixed, rule] = self.place(address);
            mixed.store(address ^ packed, Ordering::Relaxed);
            rule.store(packed, Ordering::Relaxed);
        }
    }

    /// Forgets all: other code may come to the same addresses.
    pub fn forget(&self) {
        for [_, rule] in &self.0 {
            if rule.load(Ordering::Relaxed) != 0 {
                rule.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// Writes the return addresses of the callers of `start`, innermost first, and returns how many there are,
/// and whether that is all of them. `find` looks up the rule of a code address that is not kept.
pub fn walk(
    start: Registers,
    rules: &Rules,
    mut find: impl FnMut(u64) -> Option<Rule>,
    frames: &mut [u64],
) -> (usize, bool) {
    let mut stack = Stack::at(start.sp);
    let mut at = start;
    let mut count = 0;
    loop {
        // A return address belongs to the call before it.
        let code = at.ip.saturating_sub(u64::from(count > 0));
        let rule = rules.get(code).or_else(|| {
            let rule = find(code)?;
            rules.keep(code, rule);
            Some(rule)
        });
        let caller = match rule {
            Some(rule) => stack.caller(at, rule),
            None => stack.caller_by_chain(at),
        };
        let Some(caller) = caller else {
            return (count, true);
        };
        let Some(frame) = frames.get_mut(count) else {
            return (count, false);
        };
        *frame = caller.ip;
        count += 1;
        at = caller;
    }
}

/// The part of the stack that was found to be readable.
struct Stack {
    low: u64,
    high: u64,
}

impl Stack {
    /// A thread can read the page of its own stack pointer.
    fn at(sp: u64) -> Self {
        Self {
            low: sp,
            high: (sp / PAGE + 1) * PAGE,
        }
    }

    /// The word at this address; `None` below the stack pointer and beyond the end of the stack.
    fn word(&mut self, address: u64) -> Option<u64> {
        let end = address.checked_add(8)?;
        if address < self.low || !address.is_multiple_of(8) || end > self.high + LARGEST {
            return None;
        }
        while end > self.high {
            if !sys::is_readable(self.high) {
                return None;
            }
            self.high += PAGE;
        }
        // SAFETY: of this thread's stack, above its stack pointer, in pages that can be read.
        Some(unsafe { (address as *const u64).read() })
    }

    fn caller(&mut self, at: Registers, rule: Rule) -> Option<Registers> {
        let offset = rule.offset.into();
        let cfa = match rule.base {
            Base::Stack => at.sp.wrapping_add_signed(offset),
            Base::Frame => at.bp.wrapping_add_signed(offset),
            Base::AtFrame => self.word(at.bp.wrapping_add_signed(offset))?,
            Base::End => return None,
        };
        let bp = match (rule.frame, rule.base) {
            (Some(offset), _) => self.word(cfa.wrapping_add_signed(offset.into()))?,
            (None, Base::AtFrame) => self.word(at.bp)?,
            (None, _) => at.bp,
        };
        let ip = self.word(cfa.wrapping_sub(8))?;
        // Each frame is above the one that it called.
        (cfa > at.sp && ip != 0).then_some(Registers { ip, sp: cfa, bp })
    }

    fn caller_by_chain(&mut self, at: Registers) -> Option<Registers> {
        if at.bp < at.sp || at.bp - at.sp > LARGEST {
            return None;
        }
        let ip = self.word(at.bp + 8)?;
        let bp = self.word(at.bp)?;
        (ip != 0).then_some(Registers {
            ip,
            sp: at.bp + 16,
            bp,
        })
    }
}

/// The registers here.
#[inline(always)]
#[must_use]
pub fn here() -> Registers {
    let (ip, sp, bp): (u64, u64, u64);
    // SAFETY: reads registers.
    unsafe {
        core::arch::asm!("lea {0}, [rip]", "mov {1}, rsp", "mov {2}, rbp",
                         out(reg) ip, out(reg) sp, out(reg) bp, options(nomem, nostack, preserves_flags));
    }
    Registers { ip, sp, bp }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects;
    use std::hint::black_box;

    fn find(code: u64) -> Option<Rule> {
        let object = objects::holding(code)?;
        // SAFETY: this test's program and libc stay loaded.
        let tables = unsafe { object.tables() }?;
        tables.rule(code)
    }

    static RULES: Rules = Rules::new();

    /// Ours and glibc's own, of the same place.
    #[inline(never)]
    fn both() -> (Vec<u64>, Vec<u64>) {
        let mut ours = [0; 100];
        let (count, is_whole) = walk(here(), &RULES, find, &mut ours);
        assert!(is_whole);
        let mut theirs = [std::ptr::null_mut(); 100];
        // SAFETY: as many entries.
        let known = unsafe { libc::backtrace(theirs.as_mut_ptr(), 100) };
        let known = usize::try_from(known).expect("a count");
        // Theirs starts with this function.
        let theirs = theirs[1..known].iter().map(|at| *at as u64).collect();
        (ours[..count].to_vec(), theirs)
    }

    #[inline(never)]
    fn deep(level: u32) -> (Vec<u64>, Vec<u64>) {
        let found = match level {
            0 => both(),
            _ => deep(black_box(level - 1)),
        };
        black_box(found)
    }

    #[test]
    fn stacks_are_those_that_glibc_finds() {
        objects::prepare();
        for level in [0, 1, 20, 20] {
            let (ours, theirs) = deep(level);
            assert!(ours.len() > level as usize + 3, "{ours:x?}");
            assert_eq!(ours, theirs);
        }
    }

    extern "C" fn compare(_: *const libc::c_void, _: *const libc::c_void) -> libc::c_int {
        let (ours, theirs) = deep(2);
        assert_eq!(ours, theirs);
        0
    }

    #[test]
    fn stacks_lead_through_libc_without_frame_pointers() {
        objects::prepare();
        let mut numbers = [3_u64, 1, 2];
        // SAFETY: three numbers, which the function does not touch.
        unsafe { libc::qsort(numbers.as_mut_ptr().cast(), 3, 8, Some(compare)) };
    }

    #[test]
    fn a_broken_chain_ends_without_a_crash() {
        static NONE: Rules = Rules::new();
        for bp in [0, 8, u64::MAX, u64::MAX - 7, here().sp + 8] {
            let mut frames = [0; 100];
            let start = Registers { bp, ..here() };
            walk(start, &NONE, |_| None, &mut frames);
        }
        let mut frames = [0; 100];
        let nonsense = Rule {
            base: Base::Frame,
            offset: 1 << 27,
            frame: Some(-8),
        };
        let (count, _) = walk(here(), &Rules::new(), |_| Some(nonsense), &mut frames);
        assert_eq!(count, 0);
    }
}
