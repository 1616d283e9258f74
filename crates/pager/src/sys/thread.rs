//! Threads that libc does not know.
//!
//! The pager's helpers start inside calls like `mmap`, perhaps while malloc's locks are held, so
//! they cannot be created with `pthread_create`. They get a stack and a block of zeros instead of
//! thread-local storage, run with all signals blocked, and never return.

use super::{call3, map, signals::Blocked, tasks};
use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Number of threads of this kind in this process.
static STARTED: AtomicU64 = AtomicU64::new(0);
/// Number of them that are being started: listed already, or not yet.
static STARTING: AtomicU64 = AtomicU64::new(0);
/// The error with which the kernel last refused one.
static REFUSED_WITH: AtomicI32 = AtomicI32::new(0);
/// Whether the program has been seen to start a thread in this process.
static PROGRAM_HAS: AtomicBool = AtomicBool::new(false);

/// Memory of threads of this kind. The child of a fork uses its parent's, as it may be forbidden more
/// (`ulimit -v`, `ulimit -d`).
static ROOMS: [AtomicPtr<u8>; 32] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 32];
/// How many of them are in use.
static ROOMS_USED: AtomicUsize = AtomicUsize::new(0);

/// Longest wait for the end of an execve(2) in this process.
const IN_EXEC_MS: u32 = 2_000;
/// Bytes of a helper's stack.
const STACK_BYTES: usize = 128 << 10;
/// Bytes below and above the thread pointer, so that a stray access to thread-local storage (a
/// stack protector, an `errno`) hits the thread's own memory.
const LOCAL_BYTES: usize = 32 << 10;

// clone(2) must not return into Rust on the new stack. Arguments: flags, stack, -, -, local storage
// (already in the register that the kernel expects: r8), and on the new stack where the child continues,
// the function and its argument.
global_asm!(
    ".globl pagewise_start_thread",
    ".hidden pagewise_start_thread",
    ".type pagewise_start_thread, @function",
    "pagewise_start_thread:",
    "mov eax, 56",
    "call qword ptr [rip + {entry}]",
    "ret",
    ".size pagewise_start_thread, . - pagewise_start_thread",
    ".globl pagewise_new_thread",
    ".hidden pagewise_new_thread",
    ".type pagewise_new_thread, @function",
    "pagewise_new_thread:",
    "xor ebp, ebp",
    "pop rax",
    "pop rdi",
    "call rax",
    "ud2",
    ".size pagewise_new_thread, . - pagewise_new_thread",
    entry = sym super::entry::ENTRY,
);

unsafe extern "C" {
    fn pagewise_new_thread();
    fn pagewise_start_thread(
        flags: usize,
        stack: *mut usize,
        parent_id: usize,
        child_id: usize,
        local: usize,
    ) -> isize;
}

/// Memory for one more thread.
fn room() -> Option<*mut u8> {
    let make = || map(STACK_BYTES + 2 * LOCAL_BYTES);
    let Some(room) = ROOMS.get(ROOMS_USED.fetch_add(1, Ordering::Relaxed)) else {
        return make();
    };
    let there = room.load(Ordering::Relaxed);
    if !there.is_null() {
        return Some(there);
    }
    let made = make()?;
    room.store(made, Ordering::Relaxed);
    Some(made)
}

/// Makes memory for `count` threads that only the child of a fork may start.
pub fn spare(count: usize) {
    let used = ROOMS_USED.load(Ordering::Relaxed);
    for room in ROOMS.iter().skip(used).take(count) {
        if room.load(Ordering::Relaxed).is_null()
            && let Some(made) = map(STACK_BYTES + 2 * LOCAL_BYTES)
        {
            room.store(made, Ordering::Relaxed);
        }
    }
}

/// Starts a thread that runs `body(argument)` forever; `false` if the kernel refuses.
pub fn start(body: extern "C" fn(usize) -> !, argument: usize) -> bool {
    let Some(place) = room() else {
        return false;
    };
    let flags = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS;
    let _quiet = Blocked::new();
    // SAFETY: stack and local storage are in the mapping made above, which is never unmapped. The
    // three words are on the stack as the assembly expects; 16-byte alignment holds at the call, because
    // they are popped from 8 bytes above an aligned address.
    unsafe {
        let local = place.add(STACK_BYTES + LOCAL_BYTES).cast::<usize>();
        // The thread pointer points to itself (System V ABI), also where glibc keeps `self`.
        local.write(local as usize);
        local.add(2).write(local as usize);
        let stack = place.add(STACK_BYTES - 56).cast::<usize>();
        stack.write(pagewise_new_thread as *const () as usize);
        stack.add(1).write(body as *const () as usize);
        stack.add(2).write(argument);
        STARTING.fetch_add(1, Ordering::SeqCst);
        let mut answer;
        let mut left = IN_EXEC_MS;
        loop {
            answer = pagewise_start_thread(flags as usize, stack, 0, 0, local as usize);
            // While another thread of this process is in execve(2), the kernel starts none that shares its
            // file system state (copy_fs, kernel/fork.c). That thread ends this one soon, or fails.
            if super::errno(answer) != libc::EAGAIN || left == 0 {
                break;
            }
            left -= 1;
            wait_a_millisecond();
        }
        let started = answer > 0;
        if !started {
            REFUSED_WITH.store(super::errno(answer), Ordering::Relaxed);
        }
        STARTED.fetch_add(u64::from(started), Ordering::SeqCst);
        STARTING.fetch_sub(1, Ordering::SeqCst);
        started
    }
}

fn wait_a_millisecond() {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000,
    };
    let time = core::ptr::from_ref(&time) as usize;
    // SAFETY: the time lives through the call, which writes nothing.
    unsafe { call3(libc::SYS_nanosleep, time, 0, 0) };
}

/// The error with which the kernel last refused a thread; 0 if it did not.
#[must_use]
pub fn refused_with() -> i32 {
    REFUSED_WITH.load(Ordering::Relaxed)
}

/// In the child of a fork there are no such threads.
pub fn forked() {
    REFUSED_WITH.store(0, Ordering::Relaxed);
    STARTED.store(0, Ordering::SeqCst);
    STARTING.store(0, Ordering::SeqCst);
    PROGRAM_HAS.store(false, Ordering::SeqCst);
    ROOMS_USED.store(0, Ordering::Relaxed);
}

/// The address of libc's data for this thread.
#[must_use]
pub fn pointer() -> u64 {
    let pointer: u64;
    // SAFETY: on Linux x86-64 the first word at the thread pointer is its own address.
    unsafe {
        core::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    pointer
}

/// The program starts a thread, or a process that shares this memory.
pub fn program_starts_one() {
    PROGRAM_HAS.store(true, Ordering::SeqCst);
}

/// Ends this thread, and the process with the program's last thread, as the kernel would do it: the
/// pager's own threads never end by themselves.
pub fn end(status: usize) -> ! {
    let call = match is_last() {
        true => libc::SYS_exit_group,
        false => libc::SYS_exit,
    };
    loop {
        // SAFETY: ends the thread.
        unsafe { call3(call, status, 0, 0) };
    }
}

/// Whether the program has no other thread. Two threads that end at the same time may each still
/// see the other; the kernel offers no way to avoid this. Where /proc cannot be read (`chroot`), a
/// program that has not been seen to start a thread has none.
#[must_use]
pub fn is_last() -> bool {
    settled(ours, is_last_beside)
}

/// Number of our threads, unless one is being started.
fn ours() -> Option<u64> {
    let none_starts = STARTING.load(Ordering::SeqCst) == 0;
    none_starts.then(|| STARTED.load(Ordering::SeqCst))
}

/// Whether no thread of the program is left. Where /proc cannot be read, that is not known.
#[must_use]
pub fn are_gone() -> bool {
    settled(ours, |started| {
        tasks::running().is_some_and(|running| running <= started)
    })
}

/// What `answer` says of a number that does not change meanwhile: a helper that another thread starts while
/// the threads are counted would be taken for one of the program's, and the process would never end.
fn settled(number: impl Fn() -> Option<u64>, answer: impl Fn(u64) -> bool) -> bool {
    let mut last = false;
    for _ in 0..1000 {
        if let Some(before) = number() {
            last = answer(before);
            if number() == Some(before) {
                break;
            }
        }
        super::give_way();
    }
    last
}

/// Whether all threads but one are `started` of ours.
fn is_last_beside(started: u64) -> bool {
    let most = started + 1;
    // Counting the listed threads needs no descriptor; the program may have none left.
    match tasks::listed() {
        Some(listed) => listed <= most || tasks::running().is_some_and(|running| running <= most),
        None => !PROGRAM_HAS.load(Ordering::SeqCst),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[test]
    fn a_helper_started_meanwhile_is_counted_as_ours() {
        // 14 helpers, then one that is being started, then 15; 16 threads are listed.
        let states = [Some(14), None, None, Some(15), Some(15)];
        let at = Cell::new(0);
        let number = || {
            let state = states[at.get().min(states.len() - 1)];
            at.set(at.get() + 1);
            state
        };
        assert!(settled(number, |started| 16 <= started + 1));
        assert!(!settled(|| Some(14), |started| 16 <= started + 1));
    }
}
