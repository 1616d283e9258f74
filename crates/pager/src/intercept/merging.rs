//! Pages that are alike, which the kernel merges for a process that wants that (KSM). Doing so it forgets
//! their write protection (`replace_page`, mm/ksm.c, Linux 6.18): a page that the store has would be written
//! without notice, and dropped. So managed memory is not merged.

use super::{bypass, strict};
use crate::paging::PAGER;
use crate::sys::Answer;
use core::ffi::{c_int, c_ulong};

/// `PR_SET_MEMORY_MERGE` (linux/prctl.h, Linux 6.4).
const MERGE: usize = 67;

/// `prctl(2)`. Variadic in C, where the arguments arrive in the same registers.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(
    option: c_int,
    a: c_ulong,
    b: c_ulong,
    c: c_ulong,
    d: c_ulong,
) -> c_int {
    let all = [
        option as usize,
        a as usize,
        b as usize,
        c as usize,
        d as usize,
        0,
    ];
    super::libc_answer(answer(all)) as c_int
}

fn answer(arguments: [usize; 6]) -> Answer {
    if arguments[..2] == [libc::PR_SET_SECCOMP as usize, strict::MODE] {
        return strict::entering(|| bypass::make(libc::SYS_prctl, arguments));
    }
    let answer = bypass::make(libc::SYS_prctl, arguments);
    // Merged are pages that have not changed between two rounds of the kernel's, much later.
    if arguments[0] == MERGE && answer == 0 && PAGER.is_started() {
        PAGER.keep_apart();
    }
    answer
}

/// The call made through `syscall(2)` or past libc; `None` if it is of no concern here.
pub(super) fn by_number(number: i64, arguments: [usize; 6]) -> Option<Answer> {
    let ours = [MERGE, libc::PR_SET_SECCOMP as usize];
    (number == libc::SYS_prctl && ours.contains(&arguments[0])).then(|| answer(arguments))
}
