//! What is known when the program, or the pager inside it, ends by SIGSEGV. Only builds for tests report it
//! ([`signals::REPORTS_CRASHES`]): a released library leaves the signal to the program.
//!
//! The kernel raises SIGSEGV for a touch of what is not there, and where it cannot write to a stack: for a
//! signal, or for its own bookkeeping of threads (`rseq`). So what the report says of the address, it
//! says of the stack and of libc's data for the thread as well.

use crate::paging::{PAGER, fatal};
use crate::sys::signals::{self, KernelAction};
use crate::sys::{self, maps, thread};

/// Reports the end by SIGSEGV of a program that has no handler for it.
pub fn install() {
    if !signals::REPORTS_CRASHES {
        return;
    }
    let ours = KernelAction {
        handler: on_crash as *const () as usize,
        flags: signals::SA_RESTORER
            | (libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND).cast_unsigned() as u64,
        restorer: signals::restorer(),
        mask: signals::ALL,
    };
    // SAFETY: the handler may run at any moment.
    let former = unsafe { signals::set_action(libc::SIGSEGV, Some(&ours)) };
    if let Some(former) = former.filter(|former| former.handler != libc::SIG_DFL) {
        // SAFETY: the action that was there before.
        unsafe { signals::set_action(libc::SIGSEGV, Some(&former)) };
    }
}

extern "C" fn on_crash(number: i32, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    // SAFETY: the kernel provides both structures for the duration of this call.
    let (code, address, registers, stack) = unsafe {
        let (info, context) = (&*info, &*context);
        let registers = context.uc_mcontext.gregs;
        (
            info.si_code,
            info.si_addr() as u64,
            registers,
            context.uc_stack,
        )
    };
    let register = |which: i32| registers[which as usize] as u64;
    let (error, next) = (register(libc::REG_ERR), register(libc::REG_RIP));
    let thread = sys::thread_id();
    fatal::say(format_args!(
        "SIGSEGV (code {code}, error {error:#x}) at {address:#x} on thread {thread}, signal stack {:#x} of {} bytes (flags {}); please report this and the next lines",
        stack.ss_sp as u64, stack.ss_size, stack.ss_flags
    ));
    describe("the address", address);
    describe("the instruction", next);
    describe("the stack", register(libc::REG_RSP));
    describe("libc's data for the thread", thread::pointer());
    // A fault comes again, with the default action now, and leaves its core.
    let comes_again = [1, 2].contains(&code);
    if !comes_again {
        signals::die_by(number);
    }
}

/// What the pager and the kernel know of the memory at `address`.
fn describe(name: &str, address: u64) {
    let region = PAGER.regions.find(address);
    let page = PAGER.table.page_at(address);
    match (region, page) {
        (Some(region), Some(page)) => fatal::say(format_args!(
            "  {name}, {address:#x}: in {:#x}-{:#x}, {:?}, page {:?}",
            region.start,
            region.end,
            region.kind,
            PAGER.table.word(page)
        )),
        (Some(region), None) => fatal::say(format_args!(
            "  {name}, {address:#x}: in {:#x}-{:#x}, {:?}",
            region.start, region.end, region.kind
        )),
        (None, _) => fatal::say(format_args!("  {name}, {address:#x}: not listed")),
    }
    let mapped = maps::at(address, |line| {
        let text = line.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        fatal::say(format_args!("    {}", text.trim_end_matches('\0')));
    });
    if !mapped {
        fatal::say(format_args!("    nothing is mapped there"));
    }
}
