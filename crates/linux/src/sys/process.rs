//! Processes: a fork that waits before `execve(2)`, `wait4(2)`, pidfds and signal handlers.

use super::lean_child::{Strings, Surplus, Thread};
use super::numa;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

/// Whether two processes have one memory, as a child of vfork(2) and its parent have; `false` where the
/// kernel does not tell (kcmp(2), `CONFIG_KCMP`).
#[must_use]
pub fn share_memory(one: u32, other: u32) -> bool {
    /// `KCMP_VM` (linux/kcmp.h).
    const MEMORY: libc::c_int = 1;
    // SAFETY: plain numbers; the kernel compares and changes nothing.
    unsafe { libc::syscall(libc::SYS_kcmp, one, other, MEMORY, 0_usize, 0_usize) == 0 }
}

/// The child's program. Everything is prepared before the fork, because nothing may be allocated
/// between fork and exec.
pub struct Image<'a> {
    /// File to execute.
    pub path: &'a CStr,
    /// Arguments, the program's name first.
    pub arguments: &'a [CString],
    /// Environment as `NAME=value`.
    pub environment: &'a [CString],
    /// Replacements of standard input, output and error.
    pub streams: [Option<BorrowedFd<'a>>; 3],
    /// The child's setting of transparent huge pages.
    pub huge_pages: HugePages,
    /// Where the child runs and allocates memory, if not as this process.
    pub nodes: Option<numa::Nodes>,
}

/// Setting by `PR_SET_THP_DISABLE` (prctl(2)), kept across fork and exec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HugePages {
    /// Nothing: the machine's settings apply.
    #[default]
    Inherit,
    /// None at all; `MADV_COLLAPSE` is refused too.
    Never,
    /// Only those requested by `madvise(2)` (`PR_THP_DISABLE_EXCEPT_ADVISED`, Linux 6.18): page
    /// faults and khugepaged use none elsewhere.
    AdvisedOnly,
}

impl HugePages {
    /// Second and third argument of `prctl(2)`; `None` for no call.
    fn arguments(self) -> Option<(libc::c_ulong, libc::c_ulong)> {
        /// include/uapi/linux/prctl.h
        const PR_THP_DISABLE_EXCEPT_ADVISED: libc::c_ulong = 2;
        match self {
            Self::Inherit => None,
            Self::Never => Some((1, 0)),
            Self::AdvisedOnly => Some((1, PR_THP_DISABLE_EXCEPT_ADVISED)),
        }
    }
}

/// The pipe ends that parent and child share during the fork.
pub struct Gate<'a> {
    /// The child reads one byte from here before exec.
    pub wait: BorrowedFd<'a>,
    /// The parent's end, which the child closes so that it notices the parent's death.
    pub open: BorrowedFd<'a>,
    /// The child writes `errno` here if exec fails. Closed by a successful exec.
    pub report: BorrowedFd<'a>,
}

/// What `execve` takes, in memory that the child keeps.
struct Vectors {
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    /// `/bin/sh`, the path, the arguments: for a script without an interpreter line.
    script: *const *const c_char,
    /// Holds them all.
    strings: Strings,
}

const SHELL: &CStr = c"/bin/sh";

impl Vectors {
    fn new(image: &Image<'_>) -> io::Result<Self> {
        let lists = [image.arguments, image.environment];
        let texts = lists.iter().copied().flatten().map(CString::as_c_str);
        let lengths = [lists[0].len(), lists[1].len(), lists[0].len() + 2];
        let mut strings = Strings::with_room(texts.chain([image.path]), &lengths)?;
        let path = strings.string(image.path);
        let [arguments, environment] =
            lists.map(|list| -> Vec<_> { list.iter().map(|text| strings.string(text)).collect() });
        let script: Vec<*const c_char> = [SHELL.as_ptr(), path]
            .into_iter()
            .chain(arguments.iter().skip(1).copied())
            .collect();
        Ok(Self {
            path,
            arguments: strings.list(&arguments),
            environment: strings.list(&environment),
            script: strings.list(&script),
            strings,
        })
    }
}

/// Forks a child that waits at `gate` and then executes `image`. Returns the child's id.
///
/// # Errors
/// `EAGAIN` at a process limit, `ENOMEM`.
pub fn fork_gated(image: &Image<'_>, gate: &Gate<'_>) -> io::Result<i32> {
    let vectors = Vectors::new(image)?;
    // SAFETY: the location of errno is valid as long as this thread is.
    let errno = unsafe { libc::__errno_location() }.addr();
    let on_stack = (&raw const vectors).addr();
    let surplus = Surplus::besides(&vectors.strings, Thread { on_stack, errno });
    let mut everything = empty_mask();
    let mut before = empty_mask();
    // SAFETY: both sets are local, initialised and outlive the calls.
    unsafe {
        libc::sigfillset(&raw mut everything);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const everything, &raw mut before);
    }
    // SAFETY: the child calls only async-signal-safe functions until exec or exit (`become_image`),
    // so locks of other threads at the fork do not matter.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: this is the child of a fork, with the strings behind `vectors` still alive; what the
        // heap is used for ends before the surplus is released.
        unsafe { become_image(image, gate, &vectors, &surplus, &before) }
    }
    let result = if pid < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(pid)
    };
    // SAFETY: `before` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    result
}

/// The child's side of the fork. Calls: sigaction, sigprocmask, dup2, close, prctl,
/// sched_setaffinity, set_mempolicy, madvise, open, read, execve, write, _exit; all async-signal-safe (`signal-safety(7)`) or plain system calls.
///
/// # Safety
/// Only in the child of a fork; `vectors` must point to live, NUL-terminated strings.
unsafe fn become_image(
    image: &Image<'_>,
    gate: &Gate<'_>,
    vectors: &Vectors,
    surplus: &Surplus,
    mask: &libc::sigset_t,
) -> ! {
    // SAFETY: plain system calls on descriptors that the fork duplicated; the caller guarantees
    // valid pointers.
    unsafe {
        restore_signals(mask);
        libc::close(gate.open.as_raw_fd());
        for (target, stream) in (0..).zip(&image.streams) {
            if let Some(stream) = stream
                && libc::dup2(stream.as_raw_fd(), target) < 0
            {
                give_up(gate.report.as_raw_fd());
            }
        }
        if let Some((disable, flags)) = image.huge_pages.arguments()
            && libc::prctl(libc::PR_SET_THP_DISABLE, disable, flags, 0, 0) != 0
        {
            give_up(gate.report.as_raw_fd());
        }
        if let Some(nodes) = &image.nodes
            && !numa::apply(nodes)
        {
            give_up(gate.report.as_raw_fd());
        }
        let (wait, report) = (gate.wait.as_raw_fd(), gate.report.as_raw_fd());
        // From here on, only the stack, static memory and the memory of `vectors` are used.
        surplus.release();
        if !wait_at(wait) {
            libc::_exit(127);
        }
        libc::execve(vectors.path, vectors.arguments, vectors.environment);
        if *libc::__errno_location() == libc::ENOEXEC {
            libc::execve(SHELL.as_ptr(), vectors.script, vectors.environment);
        }
        give_up(report)
    }
}

/// Sets the child's signal dispositions as for a shell's child: our handlers back to default,
/// SIGPIPE too (the Rust runtime ignores it); signals that our parent ignored stay ignored
/// (`nohup`).
///
/// # Safety
/// Only in the child of a fork.
unsafe fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: local structures; the kernel refuses unknown signals.
    unsafe {
        for signal in 1..=64 {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, ptr::null(), &raw mut action) != 0 {
                continue;
            }
            if action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE {
                action.sa_sigaction = libc::SIG_DFL;
                action.sa_flags = 0;
                libc::sigaction(signal, &raw const action, ptr::null_mut());
            }
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut());
    }
}

/// Waits for the parent's byte. False if the parent closed the gate or died.
///
/// # Safety
/// Only in the child of a fork, with `fd` open.
unsafe fn wait_at(fd: RawFd) -> bool {
    let mut byte = 0u8;
    loop {
        // SAFETY: one byte into a local variable of one byte.
        let got = unsafe { libc::read(fd, (&raw mut byte).cast(), 1) };
        // SAFETY: errno's location is this thread's own.
        if got >= 0 || unsafe { *libc::__errno_location() } != libc::EINTR {
            return got == 1;
        }
    }
}

/// Reports the error to the parent and ends the child.
///
/// # Safety
/// Only in the child of a fork.
unsafe fn give_up(report: RawFd) -> ! {
    // SAFETY: four bytes of a local variable; the parent reads them or is gone.
    unsafe {
        let errno: c_int = *libc::__errno_location();
        libc::write(report, (&raw const errno).cast(), size_of::<c_int>());
        libc::_exit(127)
    }
}

fn empty_mask() -> libc::sigset_t {
    // SAFETY: a signal set is plain bits; all zero is the empty set on Linux.
    unsafe { std::mem::zeroed() }
}

/// `wait4(2)` of one child: its raw status and the usage of it and its waited-for children. `None`
/// only if `block` is false and the child still runs.
///
/// # Errors
/// `EINTR` if a signal came first, `ECHILD` if it was already reaped.
pub fn wait4(pid: i32, block: bool) -> io::Result<Option<(i32, libc::rusage)>> {
    let mut status = 0;
    // SAFETY: a `rusage` is plain numbers, for which zero is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let flags = if block { 0 } else { libc::WNOHANG };
    // SAFETY: both out-pointers are to live locals.
    let got = unsafe { libc::wait4(pid, &raw mut status, flags, &raw mut usage) };
    match got {
        0 => Ok(None),
        _ if got == pid => Ok(Some((status, usage))),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes this process the parent of descendants that outlive their parents (prctl(2)).
///
/// # Errors
/// The kernel's refusal.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: a plain system call without pointers.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A descriptor that becomes readable when the process ends.
///
/// # Errors
/// `ENOSYS` before Linux 5.3, `ESRCH` if it is gone.
pub fn pidfd_open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes two integers; a non-negative result is a descriptor that nothing else owns.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        let fd = c_int::try_from(fd).unwrap_or(-1);
        if fd < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(OwnedFd::from_raw_fd(fd))
        }
    }
}

/// Waits until `fd` is readable (true) or the timeout has passed (false).
///
/// # Errors
/// `EINTR` if a signal came first.
pub fn poll_readable(fd: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    let mut poll = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let time = libc::timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    // SAFETY: one initialised entry, count 1; time and mask outlive the call.
    let ready = unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, ptr::null()) };
    if ready < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(ready > 0)
    }
}

/// Sends a signal to one process.
///
/// # Errors
/// `ESRCH` if it is gone, `EPERM`, `EINVAL` for an unknown signal.
pub fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: takes two integers.
    if unsafe { libc::kill(pid, signal) } < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// The last signal that requested our end; 0 for none.
static ASKED_BY: AtomicI32 = AtomicI32::new(0);
/// Number of requests since the last was acknowledged.
static ASKED: AtomicU32 = AtomicU32::new(0);
/// The third unhandled request ends the process at once.
const PATIENCE: u32 = 3;

/// Whether a process sent it to us: the terminal sends to the whole foreground group.
static WAS_SENT: AtomicBool = AtomicBool::new(false);

/// The handler. Calls: atomics, `_exit`.
extern "C" fn note_request(signal: c_int, info: *const libc::siginfo_t, _: *const c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo_t, or none.
    let code = unsafe { info.as_ref() }.map_or(libc::SI_KERNEL, |info| info.si_code);
    // Codes of kill(2), tgkill(2) and sigqueue(3) are 0 or less.
    WAS_SENT.store(code <= 0, Ordering::Relaxed);
    ASKED_BY.store(signal, Ordering::Relaxed);
    if ASKED.fetch_add(1, Ordering::Relaxed) + 1 >= PATIENCE {
        // SAFETY: `_exit` is async-signal-safe and takes an integer.
        unsafe { libc::_exit(128 + signal) }
    }
}

/// Notes `signal` from now on instead of being ended by it, unless our parent ignores it.
///
/// # Errors
/// `EINVAL` for a signal that cannot be caught.
pub fn note_signal(signal: i32) -> io::Result<()> {
    // SAFETY: `action` is a zeroed local, then filled; the handler accesses atomics only. No
    // SA_RESTART, so that blocking calls return and their callers can check the flag.
    let failed = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
        {
            return Ok(());
        }
        action.sa_sigaction = note_request
            as extern "C" fn(c_int, *const libc::siginfo_t, *const c_void)
            as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, ptr::null_mut()) != 0
    };
    if failed {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// The last noted signal, if one came since [`forget_requests`].
#[must_use]
pub fn noted_signal() -> Option<i32> {
    (ASKED.load(Ordering::Relaxed) > 0).then(|| ASKED_BY.load(Ordering::Relaxed))
}

/// Whether a process sent the last noted signal to us, so that others may not have it.
#[must_use]
pub fn was_sent() -> bool {
    WAS_SENT.load(Ordering::Relaxed)
}

/// Forgets noted signals: the request was handled.
pub fn forget_requests() {
    ASKED.store(0, Ordering::Relaxed);
}

/// Effective user id.
#[must_use]
pub fn effective_user() -> u32 {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}
