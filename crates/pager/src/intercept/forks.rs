//! Forks: the pager must be stopped exactly at the system call.
//!
//! `pthread_atfork` is too early in the parent and too late in the child: after its first handler,
//! libc takes malloc's locks, whose holders may wait for a page that is no longer served; and
//! before its second one, the child touches malloc's memory, which is not registered there yet. So
//! the system call inside libc's `_Fork` is replaced by a jump to the same call with the pager's
//! work before and after it. If it does not look as expected, `pthread_atfork` is used.
//!
//! While everything is stopped, libc writes to the child's stack, and the kernel reads the call's
//! arguments and writes ids to the given addresses. Any of this may be managed memory, which could
//! not be brought in then, and which would be empty in the child, whose memory is not registered
//! yet: it is pinned beforehand ([`Kept`]).

use super::signals::next;
use super::{bypass, detour, endings, given, libc_code, locks, strict};
use crate::page::PAGE_BYTES;
use crate::paging::PAGER;
use crate::paging::pins::Pin;
use crate::start;
use crate::sys::{self, Answer, call6, entry, thread};
use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// The system call with which libc forks.
const NUMBER: u8 = if cfg!(target_env = "musl") {
    57 // fork
} else {
    56 // clone
};
/// `mov eax, NUMBER` and `syscall`.
const CALL: [u8; 7] = [0xb8, NUMBER, 0, 0, 0, 0x0f, 0x05];

/// Where execution continues after the replaced call.
static BACK: AtomicUsize = AtomicUsize::new(0);

// Replaces the two instructions above: all registers except rax, rcx and r11 are preserved, and so
// is any data of the function below its stack pointer. 512 bytes are for the vector registers
// (fxsave64).
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
    "mov eax, {number}",
    "call qword ptr [rip + {entry}]",
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
    number = const NUMBER,
    before = sym before,
    after = sym after,
    back = sym BACK,
    entry = sym entry::ENTRY,
);

unsafe extern "C" {
    fn pagewise_fork_here();
}

/// Memory that is touched while everything is stopped.
type Kept = [Option<Pin<'static>>; 8];

const NOTHING: Kept = [const { None }; 8];

/// The memory pinned for the fork under way.
struct Keeper(UnsafeCell<Kept>);

// SAFETY: it is accessed with the regions' lock held, so by one thread at a time.
unsafe impl Sync for Keeper {}

static KEEPER: Keeper = Keeper(UnsafeCell::new(NOTHING));

/// Length of a number that the kernel writes to an address given in a call.
const NUMBER_BYTES: u64 = size_of::<c_int>() as u64;

/// Pins a number that the kernel writes if `flags` has one of `wanted`.
fn number(flags: u64, wanted: c_int, place: u64) -> Option<Pin<'static>> {
    let wanted = flags & u64::from(wanted.cast_unsigned()) != 0;
    wanted.then(|| PAGER.keep(place, NUMBER_BYTES, true))?
}

/// Whether the child of the fork under way shares its parent's descriptors.
static SHARES_FILES: AtomicBool = AtomicBool::new(false);

/// Stops everything for a fork with these `flags` that touches no managed memory other than `kept`,
/// this thread's stack, and the location of the thread id in libc.
fn before_call(mut kept: Kept, flags: u64) {
    kept[0] = PAGER.keep_stack();
    kept[1] = PAGER.keep(thread::pointer(), PAGE_BYTES as u64, true);
    let shares_files = flags & libc::CLONE_FILES as u64 != 0;
    PAGER.before_fork(!shares_files);
    SHARES_FILES.store(shares_files, Ordering::Relaxed);
    // SAFETY: `before_fork` has taken the regions' lock.
    unsafe { *KEEPER.0.get() = kept };
}

extern "C" fn before() {
    before_call(NOTHING, 0);
}

/// Returns its argument, which is the result of the call.
extern "C" fn after(answer: Answer) -> Answer {
    if answer == 0 {
        in_child();
        return answer;
    }
    // SAFETY: the regions' lock is still held.
    let kept = unsafe { core::mem::replace(&mut *KEEPER.0.get(), NOTHING) };
    PAGER.after_fork_parent(answer < 0);
    drop(kept);
    answer
}

fn in_child() {
    let raised = PAGER.choices.signals_used.load(Ordering::Relaxed);
    // SAFETY: as in `after`. The child starts with nothing pinned: the parent's pins are forgotten.
    core::mem::forget(unsafe { core::mem::replace(&mut *KEEPER.0.get(), NOTHING) });
    locks::forked();
    endings::forked();
    strict::forked();
    bypass::forked();
    if SHARES_FILES.load(Ordering::Relaxed) {
        own_descriptors();
    }
    let _limit = RaisedLimit::new();
    PAGER.after_fork_child();
    entry::guard_thread();
    if !raised && PAGER.choices.signals_used.load(Ordering::Relaxed) {
        detour::while_writable(detour::install_inner);
    }
}

/// The pager's descriptors are different ones in parent and child, so the two cannot share a table: the
/// child gets a copy.
fn own_descriptors() {
    /// `CLOSE_RANGE_UNSHARE` (Linux 5.9), which sandboxes permit more often than `unshare`.
    const COPY: usize = 2;
    let none = u32::MAX as usize;
    // SAFETY: no descriptor has this number.
    unsafe {
        if call6(libc::SYS_close_range, none, none, COPY, 0, 0, 0) != 0 {
            call6(libc::SYS_unshare, libc::CLONE_FILES as usize, 0, 0, 0, 0, 0);
        }
    }
}

/// The limit of descriptors, raised while this lives if the program has set it too low for the pager to
/// reopen its own, or uses all that it allows: it has one thread then, which opens nothing else.
struct RaisedLimit(Option<libc::rlimit>);

impl RaisedLimit {
    fn new() -> Self {
        /// The pager reopens fewer at a fork.
        const ENOUGH: u64 = 64;
        let limit = Self::exchange(None);
        let Some(low) = limit.filter(|limit| limit.rlim_cur < ENOUGH || sys::has_no_descriptor())
        else {
            return Self(None);
        };
        let most = low.rlim_max.max(ENOUGH);
        let wanted = [most, low.rlim_max].map(|both| libc::rlimit {
            rlim_cur: both,
            rlim_max: both,
        });
        let raised = wanted.iter().any(|new| Self::exchange(Some(new)).is_some());
        Self(raised.then_some(low))
    }

    /// Sets the limit, if one is given; returns the former one if that is allowed.
    fn exchange(new: Option<&libc::rlimit>) -> Option<libc::rlimit> {
        let mut former = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        let new = new.map_or(0, |new| core::ptr::from_ref(new) as usize);
        let (which, into) = (libc::RLIMIT_NOFILE as usize, &raw mut former as usize);
        // SAFETY: both structures live through the call.
        let answer = unsafe { call6(libc::SYS_prlimit64, 0, which, new, into, 0, 0) };
        (answer == 0).then_some(former)
    }
}

impl Drop for RaisedLimit {
    fn drop(&mut self) {
        if let Some(former) = &self.0 {
            Self::exchange(Some(former));
        }
    }
}

/// Takes over libc's forks.
pub fn install() {
    if [c"_Fork", c"fork"].into_iter().any(replace_in) {
        return;
    }
    unsafe extern "C" fn at_parent() {
        after(1);
    }
    unsafe extern "C" fn at_child() {
        after(0);
    }
    unsafe extern "C" fn prepare() {
        before();
    }
    // SAFETY: the functions live as long as the process: the library is never unloaded.
    unsafe { libc::pthread_atfork(Some(prepare), Some(at_parent), Some(at_child)) };
}

/// Replaces the only such call in libc's function `name`; returns whether it was found.
fn replace_in(name: &core::ffi::CStr) -> bool {
    let Some(code) = libc_code::function(name) else {
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
    libc_code::patch(from as *mut u8, &jump)
}

/// Runs `call`, which forks with `flags`, returns in both processes, and touches `kept`.
fn around(flags: u64, kept: impl FnOnce() -> Kept, call: impl FnOnce() -> Answer) -> Answer {
    if !PAGER.is_started() {
        return call();
    }
    before_call(kept(), flags);
    after(call())
}

/// `struct clone_args` (linux/sched.h), as far as it is needed here.
#[repr(C)]
#[derive(Clone, Copy)]
struct CloneArguments {
    flags: u64,
    handle: u64,
    child_number: u64,
    parent_number: u64,
    signal: u64,
    stack: u64,
    stack_bytes: u64,
    local: u64,
    wanted_numbers: u64,
    wanted_count: u64,
}

/// The size of its first version, which ends before the ids.
const LEAST_ARGUMENTS: usize = 64;

impl CloneArguments {
    /// The arguments as the kernel would read them; `None` if it would refuse.
    fn read(place: usize, bytes: usize) -> Option<Self> {
        let well =
            (LEAST_ARGUMENTS..=PAGE_BYTES).contains(&bytes) && given::is_readable(place, bytes);
        well.then(|| {
            let mut words = [0_u64; size_of::<Self>() / size_of::<u64>()];
            let count = words.len().min(bytes / size_of::<u64>());
            // SAFETY: this many words are readable there, and the structure consists only of them.
            unsafe {
                words
                    .as_mut_ptr()
                    .copy_from_nonoverlapping(place as *const u64, count);
                core::mem::transmute(words)
            }
        })
    }

    /// Whether the child returns as after `fork`.
    fn forks(&self) -> bool {
        self.flags & libc::CLONE_VM as u64 == 0 && self.stack == 0
    }

    /// Pins what the kernel reads and writes, and the arguments themselves.
    fn keep(&self, place: usize, bytes: usize) -> Kept {
        let mut kept = NOTHING;
        kept[2] = PAGER.keep(place as u64, bytes as u64, false);
        kept[3] = number(self.flags, libc::CLONE_PARENT_SETTID, self.parent_number);
        let in_child = libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID;
        kept[4] = number(self.flags, in_child, self.child_number);
        kept[5] = number(self.flags, libc::CLONE_PIDFD, self.handle);
        let wanted = self.wanted_count.min(64) * NUMBER_BYTES;
        kept[6] = PAGER.keep(self.wanted_numbers, wanted, false);
        kept
    }
}

/// A fork by `syscall(2)`; `None` for a call that creates no process with memory of its own, or a
/// child with another stack, which could not return from here.
pub(super) fn by_number(number: i64, arguments: [usize; 6]) -> Option<Answer> {
    let [a, b, c, d, e, f] = arguments;
    let copies = |flags: usize| flags & libc::CLONE_VM as usize == 0;
    // SAFETY: the program's own call.
    let call = |number: i64| unsafe { call6(number, a, b, c, d, e, f) };
    if number == libc::SYS_exit {
        // It may ask for nothing before.
        strict::end(a);
    }
    match number {
        libc::SYS_fork => Some(around(0, || NOTHING, || call(number))),
        libc::SYS_clone if copies(a) && b == 0 => Some(around(
            a as u64,
            || keep_for_clone(a as u64, c as u64, d as u64),
            || call(number),
        )),
        libc::SYS_clone3 => {
            let given = CloneArguments::read(a, b).filter(CloneArguments::forks)?;
            Some(around(given.flags, || given.keep(a, b), || call(number)))
        }
        libc::SYS_exit if PAGER.is_started() && PAGER.is_own_process() => end_thread(a),
        // For all threads means for the pager's as well, which a filter of the program's could end.
        libc::SYS_seccomp
            if a == SET_FILTER
                && b & ALL_THREADS != 0
                && PAGER.is_started()
                && thread::is_last() =>
        {
            // SAFETY: the program's own call: it has no other thread.
            Some(unsafe { call6(number, a, b & !ALL_THREADS, c, 0, 0, 0) })
        }
        // A child that shares this memory would return through our stack frames: give it its own
        // memory.
        libc::SYS_vfork => Some(around(0, || NOTHING, || call(libc::SYS_fork))),
        _ => None,
    }
}

/// The flags of a `clone3` with these arguments; none if the kernel would refuse them.
pub(super) fn flags_of_clone3(place: usize, bytes: usize) -> u64 {
    CloneArguments::read(place, bytes).map_or(0, |given| given.flags)
}

/// A fork that bypasses libc, from a signal handler. The child comes back with its parent's stack, and
/// with the place where the program wants its stack, if that is another one.
pub(super) fn past_libc(number: i64, arguments: [usize; 6]) -> (Answer, Option<u64>) {
    let [a, b, c, d, e, f] = arguments;
    if number == libc::SYS_clone && b != 0 {
        // SAFETY: the program's own call, but for the stack.
        let call = || unsafe { call6(number, a, 0, c, d, e, f) };
        let kept = || keep_for_clone(a as u64, c as u64, d as u64);
        return (around(a as u64, kept, call), Some(b as u64));
    }
    let given = match number {
        libc::SYS_clone3 => CloneArguments::read(a, b).filter(|given| given.stack != 0),
        _ => None,
    };
    if let Some(given) = given {
        let mut same = [0_u64; 16];
        let count = (b / size_of::<u64>()).min(same.len());
        // SAFETY: this many words can be read there. What a later kernel knows beyond them is left out.
        unsafe {
            same.as_mut_ptr()
                .copy_from_nonoverlapping(a as *const u64, count);
        }
        // The stack and its size.
        same[5..7].fill(0);
        let (place, bytes) = (same.as_ptr() as usize, count * size_of::<u64>());
        // SAFETY: the program's own call, but for the stack; the arguments live through it.
        let call = || unsafe { call6(number, place, bytes, 0, 0, 0, 0) };
        let top = given.stack.wrapping_add(given.stack_bytes);
        return (around(given.flags, || given.keep(a, b), call), Some(top));
    }
    let known = by_number(number, arguments);
    // SAFETY: the program's own call, which the kernel refuses.
    let answer = known.unwrap_or_else(|| unsafe { call6(number, a, b, c, d, e, f) });
    (answer, None)
}

/// Pins the ids that `clone(2)` has written.
fn keep_for_clone(flags: u64, parent: u64, child: u64) -> Kept {
    let mut kept = NOTHING;
    let in_parent = libc::CLONE_PARENT_SETTID | libc::CLONE_PIDFD;
    kept[2] = number(flags, in_parent, parent);
    let in_child = libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID;
    kept[3] = number(flags, in_child, child);
    kept
}

/// `SECCOMP_SET_MODE_FILTER` and `SECCOMP_FILTER_FLAG_TSYNC` (linux/seccomp.h).
const SET_FILTER: usize = 1;
const ALL_THREADS: usize = 1;

type Body = extern "C" fn(*mut c_void) -> c_int;

/// What the child of [`clone`] runs; written with the regions' lock held, so by one thread at a
/// time.
static BODY: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

extern "C" fn begin(argument: *mut c_void) -> c_int {
    in_child();
    // SAFETY: `clone` stored the program's function of this type.
    let body: Body = unsafe { core::mem::transmute(BODY.load(Ordering::Acquire)) };
    // libc would end only this thread.
    end_thread(body(argument) as usize)
}

/// Ends a thread of the program, and the process with the last one.
fn end_thread(status: usize) -> ! {
    // The kernel's list of threads is read into the stack.
    let _stack = PAGER.keep_stack();
    endings::prepare();
    if thread::is_last() {
        start::end();
    }
    thread::end(status)
}

/// `clone(2)`. Variadic in C; the last three arrive in registers and on the stack in any case.
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
    if flags & libc::CLONE_VM != 0 && flags & libc::CLONE_VFORK == 0 {
        thread::program_starts_one();
    }
    if copies {
        let flags = u64::from(flags.cast_unsigned());
        let mut kept = keep_for_clone(flags, parent as u64, child as u64);
        kept[4] = PAGER.keep_stack_of_child(stack as u64);
        before_call(kept, flags);
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
