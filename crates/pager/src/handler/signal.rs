//! SIGBUS in the faulting thread; and what the program has set for the signals that the pager needs.
//!
//! The kernel calls [`on_fault`] with all signals blocked, on the alternate stack if the thread has
//! one. It may call: the core (atomics, raw system calls, memory made beforehand) and, for a SIGBUS
//! that is not the pager's, the program's own handler. Nothing here touches `errno`.

use crate::paging::resolve::{self, Fault, Outcome};
use crate::paging::scan;
use crate::paging::{PAGER, fatal};
use crate::sys::signals::{self, KernelAction};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The program's own action for a signal that the pager has taken over, field by field.
struct Program {
    handler: AtomicUsize,
    flags: AtomicU64,
    mask: AtomicU64,
}

/// For SIGBUS, and for SIGSYS.
static PROGRAM: [Program; 2] = [const {
    Program {
        handler: AtomicUsize::new(0),
        flags: AtomicU64::new(0),
        mask: AtomicU64::new(0),
    }
}; 2];

/// The signals that the pager has taken over.
static OURS: AtomicU64 = AtomicU64::new(0);

fn program(number: i32) -> &'static Program {
    &PROGRAM[usize::from(number == libc::SIGSYS)]
}

/// The signals that the program may neither block nor set an action for.
#[must_use]
pub fn ours() -> signals::Set {
    OURS.load(Ordering::Relaxed)
}

/// Whether signal `number` is one of them.
#[must_use]
pub fn is_ours(number: i32) -> bool {
    (1..=64).contains(&number) && ours() & signals::bit(number) != 0
}

/// The faulting page does not belong to the device or file behind it: as raised by userfaultfd.
const BUS_ADRERR: i32 = 2;
/// Bits of the page fault's error code (x86-64).
const PRESENT: i64 = 1;
const WRITE: i64 = 2;

/// Takes over SIGBUS; the program's action is kept for signals that are not the pager's.
pub fn install() -> bool {
    match take_over() {
        Some(former) => {
            take(libc::SIGBUS, &former);
            true
        }
        None => false,
    }
}

/// Signal `number` is the pager's from now on; `former` was the program's action.
pub fn take(number: i32, former: &KernelAction) {
    remember(number, former);
    OURS.fetch_or(signals::bit(number), Ordering::Relaxed);
}

/// Sets the handler, and returns the former one.
pub fn take_over() -> Option<KernelAction> {
    let ours = KernelAction {
        handler: on_fault as *const () as usize,
        flags: signals::SA_RESTORER | (libc::SA_SIGINFO | libc::SA_ONSTACK) as u64,
        restorer: signals::restorer(),
        mask: signals::ALL,
    };
    // SAFETY: the handler may run at any moment.
    unsafe { signals::set_action(libc::SIGBUS, Some(&ours)) }
}

/// Sets the program's action for signal `number`, one of the pager's, to `action`.
pub fn remember(number: i32, action: &KernelAction) {
    let program = program(number);
    program.handler.store(action.handler, Ordering::SeqCst);
    program.flags.store(action.flags, Ordering::SeqCst);
    program.mask.store(action.mask, Ordering::SeqCst);
}

/// The program's action for signal `number`, one of the pager's.
#[must_use]
pub fn remembered(number: i32) -> KernelAction {
    let program = program(number);
    KernelAction {
        handler: program.handler.load(Ordering::SeqCst),
        flags: program.flags.load(Ordering::SeqCst),
        restorer: 0,
        mask: program.mask.load(Ordering::SeqCst),
    }
}

extern "C" fn on_fault(number: i32, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    // SAFETY: the kernel provides both structures for the duration of this call.
    let (code, address, error, thread) = unsafe {
        let registers = &(*context).uc_mcontext.gregs;
        (
            (*info).si_code,
            (*info).si_addr() as u64,
            registers[libc::REG_ERR as usize],
            local_pointer(),
        )
    };
    if code == BUS_ADRERR {
        #[cfg(debug_assertions)]
        crate::paging::rule::check(&PAGER, crate::sys::thread_id(), address);
        let fault = Fault {
            address,
            write: error & WRITE != 0,
            protected: error & PRESENT != 0,
            thread,
        };
        if resolve::resolve(&PAGER, fault) == Outcome::Resolved || is_changing(address) {
            return;
        }
    }
    if code > 0 && remembered(number).handler <= libc::SIG_IGN {
        unserved(code, address, error);
    }
    // SAFETY: both are the kernel's.
    unsafe { pass_on(number, info, context) };
}

/// The process ends by SIGBUS and nobody has said why: what is known of the page.
fn unserved(code: i32, address: u64, error: i64) {
    let access = match error & WRITE {
        0 => "reading",
        _ => "writing",
    };
    let thread = crate::sys::thread_id();
    let region = PAGER.regions.find(address);
    let page = PAGER.table.page_at(address);
    match region.filter(|region| region.kind.managed).and(page) {
        Some(page) => fatal::say(format_args!(
            "SIGBUS (code {code}, error {error}) {access} {address:#x} on thread {thread}, which is managed: {:?}; please report this line",
            PAGER.table.word(page)
        )),
        None => fatal::say(format_args!(
            "SIGBUS (code {code}, error {error}) {access} {address:#x} on thread {thread}: that memory is the program's own, as without pagewise. A file that is shorter than its mapping has this effect"
        )),
    }
}

/// Whether the address is managed once no change of ranges is under way, or belongs to the kernel
/// since then and can be read; if so, the access is retried. Signals are blocked here.
fn is_changing(address: u64) -> bool {
    let found = {
        let _regions = PAGER.regions.lock.hold();
        PAGER.regions.find(address)
    };
    found.is_some_and(|region| {
        region.kind.managed || (region.kind.ceded && scan::copy(address, &mut [0]))
    })
}

/// The thread pointer, which distinguishes threads without a call.
fn local_pointer() -> u32 {
    let pointer: u64;
    // SAFETY: on Linux x86-64 the first word at the thread pointer is its own address; helpers of
    // the pager have it as well.
    unsafe {
        core::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    (pointer >> 12) as u32
}

/// A signal that belongs to the program.
///
/// # Safety
/// `info` and `context` are the kernel's, for the duration of this call.
pub unsafe fn pass_on(number: i32, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    let action = remembered(number);
    match action.handler {
        libc::SIG_DFL => signals::die_by(number),
        // SAFETY: the kernel provides the structure for the duration of this call.
        libc::SIG_IGN if unsafe { (*info).si_code } <= 0 => {}
        // The kernel does not let a fault be ignored.
        libc::SIG_IGN => signals::die_by(number),
        handler => call_program(handler, &action, number, info, context),
    }
}

fn call_program(
    handler: usize,
    action: &KernelAction,
    number: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) {
    if action.flags & libc::SA_RESETHAND.cast_unsigned() as u64 != 0 {
        program(number)
            .handler
            .store(libc::SIG_DFL, Ordering::SeqCst);
    }
    // The handler runs with the mask that it would have had: the interrupted one and its own.
    // SAFETY: `uc_sigmask` starts with the 64 bits that the kernel knows; the handler is the one
    // that the program set for this signal, and is called as the kernel would call it.
    unsafe {
        let interrupted = (&raw const (*context).uc_sigmask)
            .cast::<signals::Set>()
            .read();
        let own = match action.flags & libc::SA_NODEFER.cast_unsigned() as u64 {
            0 => signals::bit(number),
            _ => 0,
        };
        let mask = (interrupted | action.mask | own) & !ours();
        signals::set_mask(libc::SIG_SETMASK, mask);
        if action.flags & libc::SA_SIGINFO.cast_unsigned() as u64 != 0 {
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::ucontext_t) =
                core::mem::transmute(handler);
            handler(number, info, context);
        } else {
            let handler: extern "C" fn(i32) = core::mem::transmute(handler);
            handler(number);
        }
        signals::set_mask(libc::SIG_SETMASK, signals::ALL);
    }
}
