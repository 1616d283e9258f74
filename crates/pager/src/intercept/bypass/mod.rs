//! Calls that bypass libc: made by an instruction of the program's own or of one of its libraries, as
//! Rust's rustix, runtimes of languages and hand-written code make them.
//!
//! The kernel reports each of them by SIGSYS ([`crate::sys::entry`]), and the handler makes the call as
//! libc's function of that name would make it here ([`serve`]). Code of libc is exempt, so libc's calls
//! cost a comparison in the kernel; the pager's own calls go through an instruction that it puts into
//! code of libc that no longer runs. Where faults raise SIGBUS, libc's calls are reported as well, but for
//! those that need not be ([`sites`]), and what they point to is brought in first ([`arguments`]).
//!
//! Threads start without the kernel's report, and are given it when they begin ([`returns`]).

mod arguments;
mod pointer;
mod pointers;
mod returns;
mod serve;
mod sites;

pub(super) use arguments::{hold, make};
pub(super) use returns::forked;

use super::{detour, libc_code};
use crate::handler::signal;
use crate::inject;
use crate::page::PAGE_BYTES;
use crate::paging::{PAGER, fatal};
use crate::sys::signals::{self, KernelAction};
use crate::sys::{self, entry};
use core::ffi::c_void;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use pagewise_wire::shared::Delivery;

/// `SYS_USER_DISPATCH` (asm-generic/siginfo.h): the cause of the signal, beside seccomp and kill(2).
const DISPATCHED: i32 = 2;

/// The dynamic linker's code.
static LINKER: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Asks the kernel to report such calls of this thread. `first` says whether this is the run's first
/// program, which reports where the kernel cannot do that.
pub(super) fn prepare(first: bool) {
    let unused = detour::unused();
    let code = code_around(unused.start);
    let room_in_libc = unused.end.saturating_sub(unused.start) as usize;
    let linker = code_around(linker_base());
    for (bound, value) in LINKER.iter().zip([linker.start, linker.end]) {
        bound.store(value, Ordering::Relaxed);
    }
    let well = !inject::takes_away("user_dispatch") && !code.is_empty() && answer_signals();
    let room = match PAGER.choices.delivery.load(Ordering::Relaxed) & 0xff {
        narrow if well && narrow == Delivery::Signal as u32 => sites::lead_away(&code),
        _ => None,
    };
    let well = well
        && match room {
            Some(block) => {
                entry::exempt(&block, block.start);
                let others = block.start + 16..block.start + PAGE_BYTES as u64;
                returns::use_room(others, &code);
                true
            }
            None => {
                let placed = room_in_libc >= entry::ENTER.len()
                    && libc_code::patch(unused.start as *mut u8, &entry::ENTER);
                if placed {
                    entry::exempt(&code, unused.start);
                    returns::use_room(unused.start + entry::ENTER.len() as u64..unused.end, &code);
                }
                placed
            }
        };
    let guarded = well && entry::guard_thread();
    // Where the kernel's clock cannot be read without a call, this finds out.
    let _ = sys::now_ns();
    if !guarded && first {
        fatal::say(format_args!(
            "calls that bypass libc are not seen (the kernel has no Syscall User Dispatch, Linux 5.11, or libc is not as expected): a program that drops, moves or forks its memory by such calls gets wrong bytes"
        ));
    }
}

/// Takes over SIGSYS. Its handler runs as the call would: on the same stack, with the same signals.
fn answer_signals() -> bool {
    let ours = KernelAction {
        handler: on_call as *const () as usize,
        flags: signals::SA_RESTORER | (libc::SA_SIGINFO | libc::SA_NODEFER) as u64,
        restorer: signals::restorer(),
        mask: 0,
    };
    // SAFETY: the handler may run at any moment.
    let former = unsafe { signals::set_action(libc::SIGSYS, Some(&ours)) };
    if let Some(former) = &former {
        signal::take(libc::SIGSYS, former);
    }
    former.is_some()
}

/// What the kernel writes about the signal (`struct siginfo`, `_sigsys`).
#[repr(C)]
struct Report {
    number: i32,
    errno: i32,
    code: i32,
    padding: i32,
    place: *mut c_void,
    call: i32,
    architecture: u32,
}

/// A call that bypasses libc.
#[derive(Clone, Copy)]
struct Call {
    number: i64,
    arguments: [usize; 6],
    /// Where execution continues after it.
    next: u64,
}

extern "C" fn on_call(number: i32, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    const X86_64: u32 = 0xc000_003e;
    // SAFETY: the kernel provides both structures for the duration of this call, and the first has the
    // form of a report if its code says so.
    let (report, context_now) = unsafe { (&*info.cast::<Report>(), &mut *context) };
    if report.code != DISPATCHED {
        // SAFETY: both are the kernel's.
        return unsafe { signal::pass_on(number, info, context) };
    }
    let registers = &mut context_now.uc_mcontext.gregs;
    if report.architecture != X86_64 {
        // 32-bit calls, which have other numbers and see the first 4 GiB alone.
        registers[libc::REG_RAX as usize] = -i64::from(libc::ENOSYS);
        return;
    }
    let argument = |register: i32| registers[register as usize] as usize;
    let call = Call {
        number: i64::from(report.call),
        arguments: [
            argument(libc::REG_RDI),
            argument(libc::REG_RSI),
            argument(libc::REG_RDX),
            argument(libc::REG_R10),
            argument(libc::REG_R8),
            argument(libc::REG_R9),
        ],
        next: argument(libc::REG_RIP) as u64,
    };
    if call.number == libc::SYS_clock_gettime && call.arguments[0] == libc::CLOCK_MONOTONIC as usize
    {
        sys::clock_needs_call();
    }
    serve::serve(&call, context_now);
}

impl Call {
    /// Whether the dynamic linker makes it, whose mappings are none of the program's.
    fn is_the_linkers(&self) -> bool {
        let [start, end] = LINKER.each_ref().map(|bound| bound.load(Ordering::Relaxed));
        (start..end).contains(&self.next)
    }
}

/// The address at which the dynamic linker is mapped.
fn linker_base() -> u64 {
    // SAFETY: getauxval only reads what the kernel passed to the process.
    unsafe { libc::getauxval(libc::AT_BASE) }
}

/// The code of the object with the address `within`: from the start to the end of the executable part.
fn code_around(within: u64) -> Range<u64> {
    struct Search {
        within: u64,
        found: Range<u64>,
    }
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        search: *mut c_void,
    ) -> i32 {
        // SAFETY: libc passes a valid description, and what `code_around` gave it.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        // SAFETY: the table of the object's segments, with its length.
        let parts =
            unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let range = |part: &libc::Elf64_Phdr| {
            let start = info.dlpi_addr + part.p_vaddr;
            start..start + part.p_memsz
        };
        let mut loaded = parts.iter().filter(|part| part.p_type == libc::PT_LOAD);
        if !loaded
            .clone()
            .any(|part| range(part).contains(&search.within))
        {
            return 0;
        }
        if let Some(code) = loaded.find(|part| part.p_flags & libc::PF_X != 0) {
            search.found = range(code);
        }
        1
    }
    let mut search = Search {
        within,
        found: 0..0,
    };
    // SAFETY: the function and its argument live through the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}
