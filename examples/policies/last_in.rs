//! A policy in 60 lines of Rust: the page that came last leaves first.
//!
//!   rustc --edition 2024 -O --crate-type cdylib -C panic=abort -o last_in.so last_in.rs
//!   pagewise run --memory 1G --policy ./last_in.so -- PROGRAM
//!
//! Best for one loop over more than memory: its first part stays, the rest passes. A stack of pages
//! and a mark for each; marks of pages given back are cleared, and passed over later.
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::*};

type Me = *mut core::ffi::c_void;
#[repr(C)]
pub struct Span { first: u32, count: u32 }
#[repr(C)]
pub struct Policy {
    abi: u32, size: u32, name: *const u8, bytes_per_page: u32, bytes_fixed: u32,
    create: extern "C" fn(Me, u32, u32) -> Me, faulted: usize,
    mapped: extern "C" fn(&State, u32, u32), used: usize,
    removed: extern "C" fn(&State, Span), victims: extern "C" fn(&State, *mut u32, u32) -> u32,
    kept: extern "C" fn(&State, u32), soon: usize, watch: usize, hint: usize, forked: usize,
}
// SAFETY: nothing in it changes.
unsafe impl Sync for Policy {}
#[repr(C)]
pub struct State { busy: AtomicU32, pages: u32, top: AtomicU32 }
impl State {
    fn alone<R>(&self, work: impl FnOnce(*mut u32, &[AtomicU8]) -> R) -> R {
        while self.busy.swap(1, Acquire) == 1 { core::hint::spin_loop(); }
        // SAFETY: create was given a State, then 4 + 1 bytes for each page; `busy` guards them.
        let result = unsafe {
            let stack = core::ptr::from_ref(self).add(1).cast::<u32>().cast_mut();
            let (marks, pages) = (stack.add(self.pages as usize), self.pages as usize);
            work(stack, core::slice::from_raw_parts(marks.cast::<AtomicU8>(), pages))
        };
        self.busy.store(0, Release);
        result
    }
}
extern "C" fn create(memory: Me, pages: u32, _budget: u32) -> Me {
    // SAFETY: the memory is large enough, and ours.
    unsafe { memory.cast::<State>().write(State { busy: 0.into(), pages, top: 0.into() }) };
    memory
}
/// Marks: 1 stands on the stack, 2 is alive.
extern "C" fn mapped(me: &State, page: u32, _how: u32) {
    me.alone(|stack, marks| if marks[page as usize].swap(3, Relaxed) & 1 == 0 {
        // SAFETY: each page stands on the stack once at most, so there is room.
        unsafe { stack.add(me.top.fetch_add(1, Relaxed) as usize).write(page) };
    });
}
extern "C" fn removed(me: &State, span: Span) {
    let range = span.first as usize..(span.first + span.count) as usize;
    me.alone(|_, marks| marks[range].iter().for_each(|mark| { mark.fetch_and(1, Relaxed); }));
}
extern "C" fn victims(me: &State, out: *mut u32, room: u32) -> u32 {
    me.alone(|stack, marks| {
        let mut found = 0;
        while found < room && me.top.load(Relaxed) > 0 {
            // SAFETY: below the top; `out` has `room` places.
            unsafe {
                let page = stack.add(me.top.fetch_sub(1, Relaxed) as usize - 1).read();
                out.add(found as usize).write(page);
                found += u32::from(marks[page as usize].swap(0, Relaxed) & 2 != 0);
            }
        }
        found
    })
}
extern "C" fn kept(me: &State, page: u32) { mapped(me, page, 0); }
#[unsafe(no_mangle)] #[allow(non_upper_case_globals)]
pub static pagewise_policy: Policy = Policy {
    abi: 1, size: size_of::<Policy>() as u32, name: c"last-in".as_ptr().cast(), bytes_per_page: 5,
    bytes_fixed: size_of::<State>() as u32, create, faulted: 0, mapped, used: 0, removed, victims,
    kept, soon: 0, watch: 0, hint: 0, forked: 0,
};
