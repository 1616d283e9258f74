//! In a process of its own, since other tests create more mappings of the pager than a program ever
//! has.

use pagewise_pager::sys;
use pagewise_pager::sys::maps::{Mapping, each};

fn listed(address: u64) -> Option<Mapping> {
    let mut listed = None;
    let all = each(|one| {
        if (one.start..one.end).contains(&address) {
            listed = Some(one);
        }
        true
    });
    assert!(all);
    listed
}

#[test]
fn the_programs_mappings_are_told_and_the_pagers_are_not() {
    let on_stack = 0_u8;
    let here = core::ptr::from_ref(&on_stack) as u64;
    assert!(listed(here).is_some_and(|one| one.accessible));
    let own = sys::map(1 << 20).expect("room");
    assert_eq!(listed(own as u64), None);
    // SAFETY: made above, and used by nothing.
    unsafe { sys::unmap(own, 1 << 20) };
    let again = sys::map(2 << 20).expect("room");
    assert_eq!(listed(again as u64), None);
    assert!(listed(here).is_some_and(|one| one.accessible));
}
