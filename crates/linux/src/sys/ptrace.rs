//! `ptrace(2)` as far as it stops threads for a moment, or at the end of a program. Requests are
//! made by the thread that seized.

use std::io;
use std::ptr;

/// Type of a request's number, which the C libraries declare differently.
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

/// What a thread that was seized reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It stopped because it was asked to, or was continued (SIGCONT) while it was traced.
    Asked,
    /// It stopped with its process, by SIGSTOP and the like.
    Group,
    /// It is about to receive a signal, which is to be passed on.
    Signal(i32),
    /// It is about to exit; its memory is still there.
    Exit,
    /// It has ended, with this raw status.
    Ended(i32),
}

/// Seizes a thread without stopping it. With `at_exit`, it stops when it is about to exit.
///
/// # Errors
/// `EPERM` if we may not, or something else traces it; `ESRCH` if it is gone.
pub fn seize(tid: i32, at_exit: bool) -> io::Result<()> {
    let options = match at_exit {
        true => libc::PTRACE_O_TRACEEXIT,
        false => 0,
    };
    request(
        libc::PTRACE_SEIZE,
        tid,
        usize::try_from(options).unwrap_or(0),
    )
}

/// Asks a seized thread to stop.
///
/// # Errors
/// `ESRCH` if it is gone.
pub fn interrupt(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0)
}

/// Lets a stopped thread go on, with this signal (0 for none).
///
/// # Errors
/// `ESRCH` if it is gone or not stopped.
pub fn resume(tid: i32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, tid, usize::try_from(signal).unwrap_or(0))
}

/// Leaves a thread stopped that stopped with its process, until it is continued.
///
/// # Errors
/// `ESRCH` if it is gone, `EIO` if it stopped for another reason.
pub fn listen(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_LISTEN, tid, 0)
}

/// Lets a stopped thread go for good, with this signal (0 for none).
///
/// # Errors
/// `ESRCH` if it is gone or not stopped.
pub fn detach(tid: i32, signal: i32) -> io::Result<()> {
    request(
        libc::PTRACE_DETACH,
        tid,
        usize::try_from(signal).unwrap_or(0),
    )
}

/// Sets of a stopped thread's registers (`NT_PRSTATUS`, `NT_PRFPREG`, `NT_X86_XSTATE` of elf(5) and
/// linux/elf.h): the general ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registers {
    /// General registers.
    General = 1,
    /// Those for floating point and vectors.
    Vector = 2,
    /// All of an x86 processor's further ones.
    Extended = 0x202,
}

/// Most words in a set: the extended one of AVX-512 and AMX has 11 KiB.
const MOST_WORDS: usize = 2048;

/// The words of a stopped thread's registers.
///
/// # Errors
/// `ESRCH` if it is not stopped by us, `EINVAL` or `ENODEV` if there is no such set.
pub fn registers(tid: i32, set: Registers) -> io::Result<Vec<u64>> {
    let mut words = vec![0_u64; MOST_WORDS];
    let mut room = libc::iovec {
        iov_base: words.as_mut_ptr().cast(),
        iov_len: words.len() * 8,
    };
    // SAFETY: the kernel writes at most `iov_len` bytes to `iov_base`, which `words` owns, and the new
    // length to `room`, a live local.
    let result = unsafe {
        libc::ptrace(
            libc::PTRACE_GETREGSET,
            tid,
            set as usize as *mut libc::c_void,
            (&raw mut room).cast::<libc::c_void>(),
        )
    };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    words.truncate(room.iov_len / 8);
    Ok(words)
}

fn request(request: Request, tid: i32, data: usize) -> io::Result<()> {
    // SAFETY: these requests take numbers only: no address is read or written in either process
    // (ptrace(2)); the kernel checks that the thread is ours to trace.
    let result = unsafe {
        libc::ptrace(
            request,
            tid,
            ptr::null_mut::<libc::c_void>(),
            data as *mut libc::c_void,
        )
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The next report of a seized thread, with the cost of it and its waited-for children; `None` only
/// if `block` is false and there is none.
///
/// # Errors
/// `EINTR` if a signal came first, `ECHILD` if it is not seized or gone.
pub fn wait(tid: i32, block: bool) -> io::Result<Option<(Stop, libc::rusage)>> {
    let mut status = 0;
    // SAFETY: a `rusage` is plain numbers, for which zero is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let flags = libc::__WALL | if block { 0 } else { libc::WNOHANG };
    // SAFETY: both out-pointers are to live locals.
    let got = unsafe { libc::wait4(tid, &raw mut status, flags, &raw mut usage) };
    match got {
        0 => Ok(None),
        _ if got == tid => Ok(Some((stop(status), usage))),
        _ => Err(io::Error::last_os_error()),
    }
}

fn stop(status: i32) -> Stop {
    if !libc::WIFSTOPPED(status) {
        return Stop::Ended(status);
    }
    match status >> 16 {
        libc::PTRACE_EVENT_EXIT => Stop::Exit,
        0 => Stop::Signal(libc::WSTOPSIG(status)),
        // ptrace(2), "Group-stop": its signal is that which stopped the process, else SIGTRAP.
        _ if libc::WSTOPSIG(status) != libc::SIGTRAP => Stop::Group,
        _ => Stop::Asked,
    }
}
