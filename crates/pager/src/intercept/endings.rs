//! What the kernel reads and writes when a thread ends: its number in libc's data, or where the program
//! wants it (`set_tid_address`), for those that join it, and a mark in each robust mutex that it still holds. It raises no faults for that (`handle_userfault`,
//! PF_EXITING), so a mutex in a page that is away, or write-protected, would stay locked for ever.

use crate::page::PAGE_BYTES;
use crate::paging::PAGER;
use crate::paging::pins::Pin;
use crate::sync::Lock;
use crate::sys::{self, call3, thread};
use core::cell::UnsafeCell;

/// Largest number of mutexes of one thread that are looked after.
const MOST: usize = 15;
/// `PR_GET_TID_ADDRESS` (linux/prctl.h, Linux 3.5).
const GET_TID_ADDRESS: usize = 40;
/// Threads that end at the same time, each with as many pins.
const THREADS: usize = 8;

/// Pins besides those of mutexes: libc's data, the word for the thread's number, the list's head.
const OTHERS: usize = 3;

type Pins = [Option<Pin<'static>>; MOST + OTHERS];

/// Threads that end, and what is pinned for each.
struct Ending(UnsafeCell<[Option<(u32, Pins)>; THREADS]>);

// SAFETY: it is accessed with the lock below held.
unsafe impl Sync for Ending {}

static ENDING: Ending = Ending(UnsafeCell::new([const { None }; THREADS]));
static LOCK: Lock = Lock::new();

/// `struct robust_list_head` (linux/futex.h).
#[repr(C)]
struct Head {
    next: usize,
    offset: isize,
    pending: usize,
}

/// This thread of the program is about to end: what the kernel then writes stays in memory until it
/// has.
pub(super) fn prepare() {
    if !PAGER.is_started() {
        return;
    }
    let pins = pin();
    if pins.iter().all(Option::is_none) {
        return;
    }
    let _quiet = PAGER.undisturbed();
    let mut pins = Some(pins);
    for _ in 0..1000 {
        {
            let _held = LOCK.hold();
            // SAFETY: the lock is held.
            let all = unsafe { &mut *ENDING.0.get() };
            for place in all.iter_mut() {
                if place.as_ref().is_some_and(|(thread, _)| is_gone(*thread)) {
                    *place = None;
                }
                if place.is_none()
                    && let Some(pins) = pins.take()
                {
                    *place = Some((sys::thread_id(), pins));
                }
            }
        }
        if pins.is_none() {
            return;
        }
        sys::give_way();
    }
}

fn is_gone(thread: u32) -> bool {
    let process = sys::process_id() as usize;
    // SAFETY: sends nothing.
    unsafe { call3(libc::SYS_tgkill, process, thread as usize, 0) != 0 }
}

fn pin() -> Pins {
    let mut pins = [const { None }; MOST + OTHERS];
    pins[0] = PAGER.keep(thread::pointer(), PAGE_BYTES as u64, true);
    let mut word = 0_usize;
    // SAFETY: the kernel writes an address to this frame. Without CONFIG_CHECKPOINT_RESTORE it refuses.
    let known = unsafe { call3(libc::SYS_prctl, GET_TID_ADDRESS, &raw mut word as usize, 0) } == 0;
    if known && word != 0 {
        pins[1] = PAGER.keep(word as u64, size_of::<u32>() as u64, true);
    }
    let (mut head, mut bytes) = (core::ptr::null::<Head>(), 0_usize);
    let (place, length) = (&raw mut head as usize, &raw mut bytes as usize);
    // SAFETY: both results are in this frame; the list is libc's, and consists of mutexes that this
    // thread holds.
    unsafe {
        let answer = call3(libc::SYS_get_robust_list, 0, place, length);
        if answer != 0 || head.is_null() || bytes != size_of::<Head>() {
            return pins;
        }
        pins[2] = PAGER.keep(head as u64, size_of::<Head>() as u64, true);
        let Head { next, offset, .. } = head.read();
        let mut entry = next & !1;
        for pin in &mut pins[OTHERS..] {
            if entry == head as usize || entry == 0 {
                break;
            }
            let word = entry.wrapping_add_signed(offset);
            let first = entry.min(word);
            let bytes = entry.max(word) + size_of::<usize>() - first;
            *pin = PAGER.keep(first as u64, bytes as u64, true);
            // The lowest bit tells of priority inheritance.
            entry = (entry as *const usize).read() & !1;
        }
    }
    pins
}

/// In the child of a fork no thread ends, and nothing is pinned.
pub(super) fn forked() {
    LOCK.reset();
    // SAFETY: this process has one thread.
    let all = unsafe { &mut *ENDING.0.get() };
    for place in all {
        core::mem::forget(place.take());
    }
}
