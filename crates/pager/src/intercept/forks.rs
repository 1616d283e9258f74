//! Forks: the pager must stand still right at the system call.
//!
//! `pthread_atfork` is too early in the parent and too late in the child: after its first handler
//! libc takes malloc's locks, whose holders may wait for a page that nobody serves any more; and
//! before its second one the child touches malloc's memory, which is not registered there yet. So
//! the system call inside libc's `_Fork` is replaced by a jump to the same call with the pager's
//! work on both sides. Where it does not look as expected, `pthread_atfork` has to do.

use super::detour;
use super::signals::next;
use crate::core::PAGER;
use crate::sys::{Answer, call6};
use core::arch::global_asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// `mov eax, 56` (clone) and `syscall`.
const CALL: [u8; 7] = [0xb8, 56, 0, 0, 0, 0x0f, 0x05];

/// Where the replaced call goes on.
static BACK: AtomicUsize = AtomicUsize::new(0);

// Stands in for the two instructions above: all registers but rax, rcx and r11 are kept, and so is
// what the function may have below its stack pointer. 512 bytes hold the vector registers (fxsave64).
global_asm!(
    ".globl pagewise_fork_here",
    ".hidden pagewise_fork_here",
    ".type pagewise_fork_here, @function",
    "pagewise_fork_here:",
    "lea rsp, [rsp - 128]",
    "push rbp",
    "mov rbp, rsp",
    "push rdi",
    "push rsi",
    "push rdx",
    "push r10",
    "push r8",
    "push r9",
    "sub rsp, 512",
    "and rsp, -16",
    "fxsave64 [rsp]",
    "call {before}",
    "mov rdi, [rbp - 8]",
    "mov rsi, [rbp - 16]",
    "mov rdx, [rbp - 24]",
    "mov r10, [rbp - 32]",
    "mov r8, [rbp - 40]",
    "mov r9, [rbp - 48]",
    "mov eax, 56",
    "syscall",
    "mov rdi, rax",
    "call {after}",
    "fxrstor64 [rsp]",
    "mov rdi, [rbp - 8]",
    "mov rsi, [rbp - 16]",
    "mov rdx, [rbp - 24]",
    "mov r10, [rbp - 32]",
    "mov r8, [rbp - 40]",
    "mov r9, [rbp - 48]",
    "mov rsp, rbp",
    "pop rbp",
    "lea rsp, [rsp + 128]",
    "jmp [rip + {back}]",
    ".size pagewise_fork_here, . - pagewise_fork_here",
    before = sym before,
    after = sym after,
    back = sym BACK,
);

unsafe extern "C" {
    fn pagewise_fork_here();
}

extern "C" fn before() {
    PAGER.before_fork();
}

/// Gives back what it is given, which is the call's answer.
extern "C" fn after(answer: Answer) -> Answer {
    match answer {
        0 => PAGER.after_fork_child(),
        _ => PAGER.after_fork_parent(answer < 0),
    }
    answer
}

/// Takes libc's forks over.
pub fn install() {
    if [c"_Fork", c"fork"].into_iter().any(replace_in) {
        return;
    }
    unsafe extern "C" fn in_parent() {
        PAGER.after_fork_parent(false);
    }
    unsafe extern "C" fn in_child() {
        PAGER.after_fork_child();
    }
    unsafe extern "C" fn prepare() {
        PAGER.before_fork();
    }
    // SAFETY: the functions live as long as the process: the library is never unloaded.
    unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
}

/// Replaces the only such call in libc's function `name`; whether it is there.
fn replace_in(name: &core::ffi::CStr) -> bool {
    let Some(code) = detour::function(name) else {
        return false;
    };
    let mut places = code.windows(CALL.len()).enumerate();
    let Some((place, _)) = places.find(|(_, window)| *window == CALL) else {
        return false;
    };
    if places.any(|(_, window)| window == CALL) {
        return false;
    }
    let from = code.as_ptr() as usize + place;
    let distance = (pagewise_fork_here as *const () as isize) - (from as isize + 5);
    let Ok(distance) = i32::try_from(distance) else {
        return false;
    };
    let mut jump = [0x90; CALL.len()];
    jump[0] = 0xe9;
    jump[1..5].copy_from_slice(&distance.to_le_bytes());
    BACK.store(from + CALL.len(), Ordering::Release);
    detour::patch(from as *mut u8, &jump)
}

/// Runs `call`, which forks and returns in both processes.
fn around(call: impl FnOnce() -> Answer) -> Answer {
    if !PAGER.is_started() {
        return call();
    }
    before();
    after(call())
}

/// A fork by `syscall(2)`; none for a call that makes no process with memory of its own, or a
/// child with another stack, which could not return from here.
pub(super) fn by_number(number: i64, arguments: [usize; 6]) -> Option<Answer> {
    let [a, b, c, d, e, f] = arguments;
    let copies = |flags: usize| flags & libc::CLONE_VM as usize == 0;
    // SAFETY: the program's own call.
    let call = |number: i64| unsafe { call6(number, a, b, c, d, e, f) };
    match number {
        libc::SYS_fork => Some(around(|| call(number))),
        libc::SYS_clone if copies(a) && b == 0 => Some(around(|| call(number))),
        libc::SYS_clone3 if a != 0 && b >= 64 => {
            // SAFETY: the program's `struct clone_args`: flags first, the stack sixth.
            let (flags, stack) =
                unsafe { ((a as *const u64).read(), (a as *const u64).add(5).read()) };
            (copies(flags as usize) && stack == 0).then(|| around(|| call(number)))
        }
        // A child that shares this memory would return through frames of ours: give it its own.
        libc::SYS_vfork => Some(around(|| call(libc::SYS_fork))),
        _ => None,
    }
}

type Body = extern "C" fn(*mut c_void) -> c_int;

/// What the child of [`clone`] runs; written with the regions' lock held, so by one at a time.
static BODY: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

extern "C" fn begin(argument: *mut c_void) -> c_int {
    PAGER.after_fork_child();
    // SAFETY: `clone` stored the program's function of this type.
    let body: Body = unsafe { core::mem::transmute(BODY.load(Ordering::Acquire)) };
    body(argument)
}

/// `clone(2)`. Variadic in C; the last three come in registers and on the stack all the same.
///
/// # Safety
/// As for the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clone(
    body: Body,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent: *mut c_int,
    local: *mut c_void,
    child: *mut c_int,
) -> c_int {
    let copies = PAGER.is_started() && flags & libc::CLONE_VM == 0 && !stack.is_null();
    let mut run = body;
    if copies {
        before();
        BODY.store(body as *mut c_void, Ordering::Release);
        run = begin;
    }
    let answer = next!(
        c"clone",
        fn(Body, *mut c_void, c_int, *mut c_void, *mut c_int, *mut c_void, *mut c_int) -> c_int,
        run,
        stack,
        flags,
        argument,
        parent,
        local,
        child
    );
    if copies {
        after(answer as Answer);
    }
    answer
}
