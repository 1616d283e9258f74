//! Why address space is refused that the program would have without the pager, whose tables take a part of
//! what the program's limit (`ulimit -v`) allows.

use crate::paging::{PAGER, fatal, scan};
use crate::sys::{Answer, call6, maps};
use core::sync::atomic::{AtomicBool, Ordering};

/// `answer` is the kernel's to a call that needs `wanted` more bytes of address space. Says once where the
/// pager's share is what is missing.
pub(super) fn explain(answer: Answer, wanted: u64) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if answer != -(libc::ENOMEM as Answer) || !PAGER.is_started() {
        return;
    }
    let (Some(limit), Some(size)) = (limit(), scan::address_space_bytes()) else {
        return;
    };
    let own = maps::own_bytes();
    if !is_missing(wanted, size, own, limit) || SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    const MIB: u64 = 1 << 20;
    fatal::say(format_args!(
        "ENOMEM: the program has a limit of address space of {} MiB (ulimit -v), of which {} MiB are pagewise's tables; raise it by as much",
        limit / MIB,
        own.div_ceil(MIB)
    ));
}

/// Whether `wanted` bytes pass `limit` only since `own` of the `size` bytes are the pager's.
const fn is_missing(wanted: u64, size: u64, own: u64, limit: u64) -> bool {
    let after = size.saturating_add(wanted);
    after > limit && after - own <= limit
}

/// `RLIMIT_AS`, if there is one.
fn limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    let (place, which) = (&raw mut limit as usize, libc::RLIMIT_AS as usize);
    // SAFETY: the structure lives through the call, which only reads the limit.
    unsafe { call6(libc::SYS_prlimit64, 0, which, 0, place, 0, 0) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}
