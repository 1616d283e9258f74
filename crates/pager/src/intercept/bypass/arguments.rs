//! Memory to which the arguments of a call point, where its faults raise SIGBUS: the kernel would answer
//! EFAULT on a missing page, so it is brought in and pinned until the call is over.

use super::pointer::{Kind, Pointer};
use super::pointers::{WITH, WITHOUT};
use crate::intercept::given;
use crate::intercept::shim::{self, Held};
use crate::paging::PAGER;
use crate::sys::{Answer, call6};

/// Bytes that are taken along: what a structure of a later kernel has more, or a header.
const MORE_BYTES: usize = 64;

/// Whether the call `number` has no pointer among its arguments.
pub(super) fn has_none(number: i64) -> bool {
    u16::try_from(number).is_ok_and(|number| WITHOUT.binary_search(&number).is_ok())
}

fn of_call(number: i64) -> &'static [Pointer] {
    let number = u16::try_from(number).unwrap_or(u16::MAX);
    let found = WITH.binary_search_by_key(&number, |(known, _)| *known);
    found.map_or(&[], |index| WITH[index].1)
}

/// Brings in and pins what the call needs.
pub(in crate::intercept) fn hold(number: i64, arguments: &[usize; 6]) -> Held {
    let mut held = Held::nothing();
    if !shim::is_needed() {
        return held;
    }
    for pointer in of_call(number) {
        let place = arguments[usize::from(pointer.argument)];
        let count = arguments
            .get(usize::from(pointer.count))
            .map_or(1, |count| *count as u32 as usize);
        if place == 0 {
            continue;
        }
        let bytes = usize::from(pointer.each).saturating_mul(count.max(1));
        held.keep(place, bytes.saturating_add(MORE_BYTES), pointer.writes);
        match pointer.kind {
            Kind::Bytes => {}
            Kind::Parts => held.keep_parts(place, count),
            Kind::Message => held.keep_message(place),
            Kind::Messages => {
                let size = usize::from(pointer.each);
                (0..count.min(64)).for_each(|index| held.keep_message(place + index * size));
            }
        }
    }
    held
}

/// Makes the call, for which [`hold`] has been done. Where it fails all the same, what looks like a pointer
/// among its arguments, and then in what they point to, is brought in as well: `ioctl`, `prctl` and others
/// have pointers that no type tells of.
pub(in crate::intercept) fn make(number: i64, arguments: [usize; 6]) -> Answer {
    const FAULT: Answer = -(libc::EFAULT as Answer);
    const ROUNDS: usize = 3;
    let raw = || {
        let [a, b, c, d, e, f] = arguments;
        // SAFETY: the program's own call.
        unsafe { call6(number, a, b, c, d, e, f) }
    };
    if !shim::is_needed() {
        return raw();
    }
    if let Some(answer) = shim::transfer_by_number(number, arguments) {
        return answer;
    }
    let mut answer = raw();
    for round in 1..=ROUNDS {
        if answer != FAULT {
            break;
        }
        let mut held = Held::nothing();
        arguments
            .iter()
            .for_each(|place| guess(&mut held, *place, round.min(2)));
        answer = raw();
    }
    answer
}

/// Pins what is at `place`, if that is memory of this process, and what is there points to.
fn guess(held: &mut Held, place: usize, depth: usize) {
    /// Bytes of a structure with pointers.
    const LOOK: usize = 128;
    const WORD: usize = size_of::<usize>();
    /// Below it nothing is mapped.
    const LEAST: usize = 1 << 16;
    if place < LEAST {
        return;
    }
    if PAGER.raises(place as u64, (place as u64).saturating_add(1)) {
        held.keep(place, crate::page::PAGE_BYTES, true);
    }
    if depth > 1 && given::is_readable(place, LOOK) {
        for index in 0..LOOK / WORD {
            // SAFETY: this many bytes can be read there.
            let word = unsafe { (place as *const usize).add(index).read_unaligned() };
            guess(held, word, depth - 1);
        }
    }
}
