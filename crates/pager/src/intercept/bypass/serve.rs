//! What is done instead of a call that bypasses libc.

use super::{Call, arguments, returns};
use crate::intercept::{calls, forks, heap, threads};
use crate::paging::{PAGER, fatal};
use crate::start;
use crate::sys::signals::Set;
use crate::sys::{Answer, call3, call6, entry, thread};
use core::sync::atomic::{AtomicBool, Ordering};

const FLAG_VM: u64 = libc::CLONE_VM as u64;
const FLAG_VFORK: u64 = libc::CLONE_VFORK as u64;

/// Makes the call, and sets what the program finds in its registers when it continues.
pub(super) fn serve(call: &Call, context: &mut libc::ucontext_t) {
    let a = call.arguments[0];
    let _held = match call.number {
        libc::SYS_rt_sigreturn | libc::SYS_vfork | libc::SYS_clone | libc::SYS_clone3 => None,
        number => Some(arguments::hold(number, &call.arguments)),
    };
    let answer = match call.number {
        libc::SYS_rt_sigreturn => {
            return leave_for(entry::ENTRY.load(Ordering::Acquire) as u64, context);
        }
        libc::SYS_vfork | libc::SYS_clone | libc::SYS_clone3 => return clone(call, context),
        // The return from the handler would take the new key's rights away again.
        libc::SYS_pkey_alloc if make_there(call, context) => return,
        libc::SYS_sigaltstack => set_stack(call, context),
        libc::SYS_rt_sigprocmask => set_mask(call, context),
        libc::SYS_prctl if a == entry::SET_DISPATCH => refuse_dispatch(),
        libc::SYS_exit_group => {
            start::end();
            raw(call)
        }
        libc::SYS_brk if !call.is_the_linkers() => heap::raw_brk(a),
        number if call.is_the_linkers() => arguments::make(number, call.arguments),
        number => {
            // SAFETY: the program's own call.
            let known = unsafe { calls::by_number(number, call.arguments) };
            known.unwrap_or_else(|| arguments::make(number, call.arguments))
        }
    };
    set_answer(context, answer);
}

fn raw(call: &Call) -> Answer {
    let [a, b, c, d, e, f] = call.arguments;
    // SAFETY: the program's own call.
    unsafe { call6(call.number, a, b, c, d, e, f) }
}

fn set_answer(context: &mut libc::ucontext_t, answer: Answer) {
    context.uc_mcontext.gregs[libc::REG_RAX as usize] = answer as i64;
}

/// Execution continues at `place`, with the registers of the call.
fn leave_for(place: u64, context: &mut libc::ucontext_t) {
    context.uc_mcontext.gregs[libc::REG_RIP as usize] = place.cast_signed();
}

/// The program makes the call itself, in the exempt range. Returns whether there is room for that.
fn make_there(call: &Call, context: &mut libc::ucontext_t) -> bool {
    let piece = returns::piece_for(call.next);
    if let Some(piece) = piece {
        leave_for(piece, context);
    }
    piece.is_some()
}

/// The stack for signals that the program has is the one that the return from the handler sets.
fn set_stack(call: &Call, context: &mut libc::ucontext_t) -> Answer {
    threads::given_stack(call.arguments[0] as *const libc::stack_t);
    let answer = raw(call);
    if answer == 0 {
        let place = &raw mut context.uc_stack as usize;
        // SAFETY: the structure lives through the call, which only reads what is set.
        unsafe { call3(libc::SYS_sigaltstack, 0, place, 0) };
    }
    answer
}

/// The mask that the program has is the one to which the handler returns.
fn set_mask(call: &Call, context: &mut libc::ucontext_t) -> Answer {
    // SAFETY: the program's own call.
    let known = unsafe { calls::by_number(call.number, call.arguments) };
    let answer = known.unwrap_or_else(|| raw(call));
    let mut mask: Set = 0;
    let (place, bytes) = (&raw mut mask as usize, size_of::<Set>());
    // SAFETY: the set lives through the call, which only reads this thread's mask; `uc_sigmask` starts
    // with the 64 bits that the kernel knows.
    unsafe {
        call6(libc::SYS_rt_sigprocmask, 0, 0, place, bytes, 0, 0);
        (&raw mut context.uc_sigmask).cast::<Set>().write(mask);
    }
    answer
}

/// A program that wants the kernel to report its own calls.
fn refuse_dispatch() -> Answer {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        fatal::say(format_args!(
            "this program's own Syscall User Dispatch is refused (EINVAL): the pager uses it"
        ));
    }
    -(libc::EINVAL as Answer)
}

/// A new process or thread. One with memory of its own is a fork; who shares this memory starts where
/// the program called, and so must not see this handler's stack.
fn clone(call: &Call, context: &mut libc::ucontext_t) {
    let flags = match call.number {
        libc::SYS_vfork => FLAG_VM | FLAG_VFORK,
        libc::SYS_clone => call.arguments[0] as u64,
        _ => forks::flags_of_clone3(call.arguments[0], call.arguments[1]),
    };
    if flags & FLAG_VM == 0 {
        let (answer, stack) = forks::past_libc(call.number, call.arguments);
        if let Some(stack) = stack.filter(|_| answer == 0) {
            context.uc_mcontext.gregs[libc::REG_RSP as usize] = stack.cast_signed();
        }
        return set_answer(context, answer);
    }
    if flags & FLAG_VFORK == 0 && PAGER.is_started() {
        thread::program_starts_one();
    }
    if make_there(call, context) {
        return;
    }
    let answer = match call.number {
        libc::SYS_vfork => forks::past_libc(libc::SYS_fork, [0; 6]).0,
        _ => refuse_thread(),
    };
    set_answer(context, answer);
}

/// There is no room for one more place that starts threads.
fn refuse_thread() -> Answer {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        fatal::say(format_args!(
            "this program starts threads past libc at more places than can be followed: refused (EAGAIN)"
        ));
    }
    -(libc::EAGAIN as Answer)
}
