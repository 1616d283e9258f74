//! userfaultfd: the calls of `linux/userfaultfd.h` in Linux 6.8, each with its own function.

use super::progress::Progress;
use super::{Answer, call3, call6};
use crate::inject;
use core::sync::atomic::{AtomicI32, Ordering};

/// Only faults taken in user mode (needs no privilege).
pub const USER_MODE_ONLY: usize = 1;

/// Features of `UFFDIO_API`.
pub mod feature {
    /// Write-protect faults are distinguished.
    pub const PAGEFAULT_FLAG_WP: u64 = 1 << 0;
    /// Faults raise SIGBUS in the faulting thread.
    pub const SIGBUS: u64 = 1 << 7;
    /// Messages contain the thread.
    pub const THREAD_ID: u64 = 1 << 8;
    /// CONTINUE for shared memory.
    pub const MINOR_SHMEM: u64 = 1 << 10;
    /// Missing pages can be write-protected.
    pub const WP_UNPOPULATED: u64 = 1 << 13;
    /// The kernel resolves write protection by itself.
    pub const WP_ASYNC: u64 = 1 << 15;
    /// Pages can be moved.
    pub const MOVE: u64 = 1 << 16;
}

/// Flags of a fault message.
pub mod flag {
    /// The access was a write.
    pub const WRITE: u64 = 1;
    /// The page is present but write-protected.
    pub const WP: u64 = 2;
}

/// Mode: the pages arrive write-protected.
pub const COPY_MODE_WP: u64 = 2;
const REGISTER_MISSING: u64 = 1;
const REGISTER_WP: u64 = 2;
const WRITEPROTECT_ON: u64 = 1;

/// `_IOWR(0xAA, number, bytes)`.
const fn read_write(number: usize, bytes: usize) -> usize {
    3 << 30 | bytes << 16 | 0xaa << 8 | number
}

/// `_IOR(0xAA, number, bytes)`.
const fn read(number: usize, bytes: usize) -> usize {
    2 << 30 | bytes << 16 | 0xaa << 8 | number
}

const API: usize = read_write(0x3f, 24);
const REGISTER: usize = read_write(0x00, 32);
const UNREGISTER: usize = read(0x01, 16);
const WAKE: usize = read(0x02, 16);
const COPY: usize = read_write(0x03, 40);
const MOVE: usize = read_write(0x05, 40);
const WRITEPROTECT: usize = read_write(0x06, 24);

/// A message: an event and, for a page fault, its flags, address and thread.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Message {
    /// `UFFD_EVENT_*`.
    pub event: u8,
    reserved: [u8; 7],
    /// [`flag`].
    pub flags: u64,
    /// Faulting address, rounded to its page.
    pub address: u64,
    /// The thread.
    pub thread: u32,
    reserved2: u32,
}

/// A page fault's event number.
pub const EVENT_PAGEFAULT: u8 = 0x12;

const _: () = assert!(size_of::<Message>() == 32);

/// A userfaultfd. The descriptor changes in the child of a fork, hence the atomic.
#[derive(Debug)]
pub struct Uffd(AtomicI32);

impl Uffd {
    /// None yet.
    #[must_use]
    pub const fn none() -> Self {
        Self(AtomicI32::new(-1))
    }

    /// The file descriptor, or -1.
    #[must_use]
    pub fn fd(&self) -> i32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether it is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.fd() >= 0
    }

    /// Takes over `fd`.
    pub fn set(&self, fd: i32) {
        self.0.store(fd, Ordering::Relaxed);
    }

    /// Closes it, if it is open.
    pub fn close(&self) {
        super::close(self.0.swap(-1, Ordering::Relaxed));
    }

    fn ioctl<T>(&self, request: usize, argument: &mut T) -> Answer {
        let argument = core::ptr::from_mut(argument) as usize;
        // SAFETY: each request is called with the structure that the kernel defines for it, which
        // lives through the call; page contents that change belong to the pager.
        let answer = unsafe { call3(libc::SYS_ioctl, self.fd() as usize, request, argument) };
        if matches!(request, COPY | WRITEPROTECT) && is_refused(answer) {
            end_refused();
        }
        answer
    }

    /// Missing and write-protect faults of `[start, end)` come here from now on.
    pub fn register(&self, start: u64, end: u64) -> Answer {
        let mut range = [start, end - start, REGISTER_MISSING | REGISTER_WP, 0];
        self.ioctl(REGISTER, &mut range)
    }

    /// Pages can be moved to `[start, end)` from now on; missing ones remain with the kernel.
    pub fn register_for_moves(&self, start: u64, end: u64) -> Answer {
        let mut range = [start, end - start, REGISTER_WP, 0];
        self.ioctl(REGISTER, &mut range)
    }

    /// No more faults of `[start, end)`.
    pub fn unregister(&self, start: u64, end: u64) -> Answer {
        self.ioctl(UNREGISTER, &mut [start, end - start])
    }

    /// Lets threads that wait in `[start, end)` try again.
    pub fn wake(&self, start: u64, end: u64) {
        self.ioctl(WAKE, &mut [start, end - start]);
    }

    /// Copies `bytes` bytes from `from` to the missing pages at `to`.
    pub fn copy(&self, to: u64, from: u64, bytes: u64, mode: u64) -> Progress {
        let mut request = [to, from, bytes, mode, 0];
        let answer = self.ioctl(COPY, &mut request);
        progress(answer, request[4], bytes)
    }

    /// Moves pages from `from` to the missing pages at `to`.
    pub fn relocate(&self, to: u64, from: u64, bytes: u64) -> Progress {
        inject::moved(bytes, |bytes| {
            let mut request = [to, from, bytes, 0, 0];
            let answer = self.ioctl(MOVE, &mut request);
            progress(answer, request[4], bytes)
        })
    }

    /// Write-protects `[start, end)`.
    pub fn protect(&self, start: u64, end: u64) -> Answer {
        self.again(WRITEPROTECT, [start, end - start, WRITEPROTECT_ON])
    }

    /// Removes the write protection of `[start, end)` and wakes threads that wait for that.
    pub fn unprotect(&self, start: u64, end: u64) -> Answer {
        self.again(WRITEPROTECT, [start, end - start, 0])
    }

    /// EAGAIN means that the address space is changing at the moment.
    fn again(&self, request: usize, argument: [u64; 3]) -> Answer {
        loop {
            let answer = self.ioctl(request, &mut argument.clone());
            if answer != -(libc::EAGAIN as isize) {
                return answer;
            }
        }
    }

    /// Waits for messages. Returns their number.
    pub fn read(&self, messages: &mut [Message]) -> usize {
        let bytes = size_of_val(messages);
        // SAFETY: the buffer lives through the call and has the length that is passed.
        let answer = unsafe {
            call3(
                libc::SYS_read,
                self.fd() as usize,
                messages.as_mut_ptr() as usize,
                bytes,
            )
        };
        usize::try_from(answer).unwrap_or(0) / size_of::<Message>()
    }

    /// Returns a message if there is one already, or an error if the kernel does not support such a
    /// read (`EOPNOTSUPP` before Linux 6.11) or there is no message (`EAGAIN`).
    ///
    /// # Errors
    /// The `errno` of the call.
    pub fn read_now(&self, message: &mut Message) -> Result<(), i32> {
        let bytes = size_of::<Message>();
        let parts = [core::ptr::from_mut(message) as usize, bytes];
        // SAFETY: one `struct iovec`, whose buffer lives through the call. The offset -1 is the
        // file's own, in two halves.
        let answer = unsafe {
            call6(
                libc::SYS_preadv2,
                self.fd() as usize,
                parts.as_ptr() as usize,
                1,
                usize::MAX,
                usize::MAX,
                libc::RWF_NOWAIT as usize,
            )
        };
        match answer {
            read if read == bytes as isize => Ok(()),
            read if read >= 0 => Err(libc::EAGAIN),
            failed => Err(super::errno(failed)),
        }
    }
}

/// Whether a filter of the program's own answers so: the kernel has no such answer to these requests.
fn is_refused(answer: Answer) -> bool {
    [libc::EPERM, libc::EACCES, libc::ENOSYS]
        .iter()
        .any(|errno| answer == -(*errno as Answer))
}

/// No page can be had any more: the process ends, with the reason.
fn end_refused() -> ! {
    super::complain(
        b"pagewise: this program's filter of system calls (seccomp) refuses ioctl, without which its memory cannot be paged: it ends with SIGBUS; let the filter allow ioctl, or use --delivery fd\n",
    );
    super::signals::die_by(libc::SIGBUS)
}

fn progress(answer: Answer, done: u64, wanted: u64) -> Progress {
    if answer == 0 {
        return Progress {
            bytes: wanted,
            errno: 0,
        };
    }
    let signed = done.cast_signed();
    Progress {
        bytes: u64::try_from(signed).unwrap_or(0),
        errno: match signed {
            negative if negative < 0 => i32::try_from(-negative).unwrap_or(libc::EIO),
            _ => super::errno(answer),
        },
    }
}

/// `/dev/userfaultfd` (Linux 6.1): a process that could open it can create userfaultfds with it
/// permanently, even after it has dropped its privileges. -1 without it.
static MAKER: AtomicI32 = AtomicI32::new(-1);

/// `USERFAULTFD_IOC_NEW`: `_IO(0xAA, 0)`.
const NEW: usize = 0xaa << 8;

/// Opens [`maker`], if this process may; once, before the program runs.
pub fn prepare() {
    let answer = super::open(c"/dev/userfaultfd", libc::O_RDWR);
    let fd = super::high(i32::try_from(answer).unwrap_or(-1)).max(-1);
    MAKER.store(fd, Ordering::Relaxed);
}

/// The descriptor with which userfaultfds are created; -1 without one.
#[must_use]
pub fn maker() -> i32 {
    MAKER.load(Ordering::Relaxed)
}

/// A new userfaultfd: with the system call or, where that is not (or no longer) permitted, with the
/// device.
fn create(flags: usize) -> Answer {
    // SAFETY: plain arguments.
    let answer = unsafe { call3(libc::SYS_userfaultfd, flags, 0, 0) };
    match maker() {
        maker @ 0.. if answer == -(libc::EPERM as isize) => {
            // SAFETY: plain arguments.
            unsafe { call3(libc::SYS_ioctl, maker as usize, NEW, flags) }
        }
        _ => answer,
    }
}

/// Opens a userfaultfd with `features`; the `errno` if that fails.
///
/// # Errors
/// The `errno` of the call that failed.
pub fn open(flags: usize, features: u64) -> Result<i32, i32> {
    let answer = create(flags | libc::O_CLOEXEC as usize);
    if answer < 0 {
        return Err(super::errno(answer));
    }
    let fd = answer as i32;
    let mut request = [0xaa, features, 0];
    // SAFETY: the structure of UFFDIO_API lives through the call.
    let answer = unsafe {
        call3(
            libc::SYS_ioctl,
            fd as usize,
            API,
            core::ptr::from_mut(&mut request) as usize,
        )
    };
    if answer < 0 {
        // SAFETY: closes the descriptor opened above, which nothing else uses.
        unsafe { call3(libc::SYS_close, fd as usize, 0, 0) };
        return Err(super::errno(answer));
    }
    Ok(fd)
}

/// All features that this kernel has; 0 if there is no userfaultfd.
#[must_use]
pub fn features() -> u64 {
    let fd = create(libc::O_CLOEXEC as usize | USER_MODE_ONLY);
    if fd < 0 {
        return 0;
    }
    let mut request = [0xaa_u64, 0, 0];
    // SAFETY: the structure of UFFDIO_API lives through the call; the descriptor is closed after.
    unsafe {
        let argument = core::ptr::from_mut(&mut request) as usize;
        call3(libc::SYS_ioctl, fd as usize, API, argument);
        call3(libc::SYS_close, fd as usize, 0, 0);
    }
    request[1]
}
