//! Processes: fork, exec, exit.

use super::signals::next;
use super::{given, libc_answer, programs, set_errno};
use crate::handler::signal;
use crate::paging::PAGER;
use crate::start;
use crate::sys::{self, Answer, call3, call6, signals};
use core::ffi::{c_char, c_int};
use core::fmt::Write;
use core::sync::atomic::Ordering;

/// Registers for the end of the process, where libc's own call of `_exit` is not seen. What runs
/// after these functions (destructors, stdio, other threads) may touch any page.
pub fn prepare() {
    // SAFETY: the function lives as long as the process: the library is never unloaded.
    unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    start::finish();
}

type Text = *const c_char;
type List = *const Text;

/// `execve(2)`. The pager's memory goes with the old program; only its references to slots that
/// other processes of the run share remain until one of those frees them. Where none would, they are
/// released before. The kernel's arguments must not be in pages that are released with them: they
/// are copied.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: Text, arguments: List, environment: List) -> c_int {
    let Some(environment) = admitted(path, environment) else {
        set_errno(libc::EACCES);
        return -1;
    };
    // SAFETY: the program's own arguments, or copies of them.
    unsafe {
        if PAGER.is_started()
            && PAGER.leaves_slots()
            && let Some(bytes) = measure(path, arguments, environment)
            && is_program(path)
            && let Some(place) = sys::map(bytes)
        {
            let mut room = Room { place };
            let path = room.text(path);
            let arguments = room.list(arguments);
            let environment = room.list(environment);
            // Who could serve a fault on this stack may be waiting for the exec.
            let _stack = PAGER.keep_stack();
            PAGER.release_for_exec();
            let answer = raw_exec(path, arguments, environment);
            PAGER.stay();
            return libc_answer(answer) as c_int;
        }
        libc_answer(exec_after_touch(path, arguments, environment)) as c_int
    }
}

/// One of these calls made through `syscall(2)`; `None` if `number` is a different one.
///
/// # Safety
/// As for the call.
pub(super) unsafe fn by_number(number: i64, arguments: [usize; 6]) -> Option<i64> {
    let [a, b, c, d, e, _] = arguments;
    // SAFETY: the caller's arguments.
    let answer = unsafe {
        match number {
            libc::SYS_execve => execve(a as Text, b as List, c as List),
            libc::SYS_execveat => execveat(a as c_int, b as Text, c as List, d as List, e as c_int),
            _ => return None,
        }
    };
    Some(i64::from(answer))
}

/// The environment with which the program at `path` may run; `None` if it is refused.
fn admitted(path: Text, environment: List) -> Option<List> {
    match PAGER.is_started() {
        true => programs::admit(path, environment),
        false => Some(environment),
    }
}

unsafe fn raw_exec(path: Text, arguments: List, environment: List) -> Answer {
    let (path, arguments) = (path as usize, arguments as usize);
    // SAFETY: the caller is responsible for the arguments.
    unsafe { call3(libc::SYS_execve, path, arguments, environment as usize) }
}

/// `fexecve(3)`.
///
/// # Safety
/// As for the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fexecve(file: c_int, arguments: List, environment: List) -> c_int {
    let mut path = crate::sys::line::Line::new();
    // Written without allocation, as this may run in the child of a vfork.
    let written = write!(path, "/proc/self/fd/{file}\0");
    let path = path.text().as_ptr().cast();
    let admitted = match written.is_ok() {
        true => admitted(path, environment),
        false => Some(environment),
    };
    let Some(environment) = admitted else {
        set_errno(libc::EACCES);
        return -1;
    };
    next!(
        c"fexecve",
        fn(c_int, List, List) -> c_int,
        file,
        arguments,
        environment
    )
}

/// `execveat(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execveat(
    folder: c_int,
    path: Text,
    arguments: List,
    environment: List,
    flags: c_int,
) -> c_int {
    let Some(environment) = admitted_at(folder, path, environment) else {
        set_errno(libc::EACCES);
        return -1;
    };
    // SAFETY: the program's own call.
    libc_answer(unsafe {
        call6(
            libc::SYS_execveat,
            folder as usize,
            path as usize,
            arguments as usize,
            environment as usize,
            flags as usize,
            0,
        )
    }) as c_int
}

/// The same as [`admitted`] for `path` in a folder; without a name, for the open file itself. A path
/// too long to be put together is not looked at.
fn admitted_at(folder: c_int, path: Text, environment: List) -> Option<List> {
    let Some(length) = given::text_length(path) else {
        return Some(environment);
    };
    // SAFETY: this many bytes are readable there.
    let name = unsafe { core::slice::from_raw_parts(path.cast::<u8>(), length) };
    if folder == libc::AT_FDCWD || name.first() == Some(&b'/') {
        return admitted(path, environment);
    }
    let mut whole = crate::sys::line::Line::new();
    let written = match core::str::from_utf8(name) {
        Ok("") => write!(whole, "/proc/self/fd/{folder}\0"),
        Ok(name) => write!(whole, "/proc/self/fd/{folder}/{name}\0"),
        Err(_) => return Some(environment),
    };
    match written.is_ok() && whole.text().ends_with(b"\0") {
        true => admitted(whole.text().as_ptr().cast(), environment),
        false => Some(environment),
    }
}

/// If faults raise SIGBUS, the kernel fails at a missing page: then each string is read, and read
/// again if one was evicted meanwhile. A child of `posix_spawn` no longer has handlers, but still
/// has this memory.
unsafe fn exec_after_touch(path: Text, arguments: List, environment: List) -> Answer {
    const ATTEMPTS: usize = 100;
    const FAULT: Answer = -(libc::EFAULT as isize);
    // SAFETY: the program's own arguments.
    let mut answer = unsafe { raw_exec(path, arguments, environment) };
    let raises = PAGER.is_started() && PAGER.choices.signals_used.load(Ordering::Relaxed);
    for _ in 0..ATTEMPTS {
        if !raises || answer != FAULT || signal::take_over().is_none() {
            break;
        }
        // SAFETY: as above. The mask is restored, because it outlives exec.
        unsafe {
            let mask = signals::set_mask(libc::SIG_UNBLOCK, signals::bit(libc::SIGBUS));
            let readable = measure(path, arguments, environment).is_some();
            signals::set_mask(libc::SIG_SETMASK, mask);
            if !readable {
                break;
            }
            answer = raw_exec(path, arguments, environment);
        }
    }
    answer
}

/// Whether the kernel can execute the file: after the release, the pages in the store cannot be
/// recovered.
unsafe fn is_program(path: Text) -> bool {
    const EXECUTE: usize = 1;
    let mut start = [0_u8; 4];
    // SAFETY: the program's own path, and a buffer of this function's.
    unsafe {
        if call3(libc::SYS_access, path as usize, EXECUTE, 0) != 0 {
            return false;
        }
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let file = call3(libc::SYS_open, path as usize, flags as usize, 0);
        if file < 0 {
            // Executable, but not readable.
            return file == -(libc::EACCES as isize);
        }
        call3(
            libc::SYS_read,
            file as usize,
            start.as_mut_ptr() as usize,
            4,
        );
        call3(libc::SYS_close, file as usize, 0, 0);
    }
    start == *b"\x7fELF" || start.starts_with(b"#!")
}

/// The strings of a list that ends with null, or is null.
unsafe fn strings(list: List) -> impl Iterator<Item = Text> {
    // SAFETY: the program's own list, read up to its end.
    let at = move |index: usize| unsafe { list.add(index).read() };
    (0..).map_while(move |index| (!list.is_null() && !at(index).is_null()).then(|| at(index)))
}

/// Size of the copies; `None` if something cannot be read, which is left to the kernel to refuse.
fn measure(path: Text, arguments: List, environment: List) -> Option<usize> {
    let one = |text: Text| Some(size_of::<Text>() + given::text_length(text)? + 1);
    let mut bytes = one(path)? + 4 * size_of::<Text>();
    for list in [arguments, environment] {
        given::list_length(list)?;
        // SAFETY: the list can be read up to its end.
        for text in unsafe { strings(list) } {
            bytes += one(text)?;
        }
    }
    Some(bytes)
}

/// Memory for the copies, of the size computed by [`measure`].
struct Room {
    place: *mut u8,
}

impl Room {
    unsafe fn text(&mut self, text: Text) -> Text {
        let copy = self.place;
        // SAFETY: the size was computed with this string in it.
        unsafe {
            let bytes = libc::strlen(text) + 1;
            copy.copy_from_nonoverlapping(text.cast(), bytes);
            self.place = copy.add(bytes);
        }
        copy as Text
    }

    unsafe fn list(&mut self, list: List) -> List {
        if list.is_null() {
            return list;
        }
        // SAFETY: as for `text`; one word more than the strings for the end, and one for alignment.
        unsafe {
            let copy = self.place.add(self.place.align_offset(align_of::<Text>())) as *mut Text;
            let count = strings(list).count();
            self.place = copy.add(count + 1).cast();
            for (index, text) in strings(list).take(count).enumerate() {
                copy.add(index).write(self.text(text));
            }
            copy
        }
    }
}

/// `_exit(2)`: ends without running the functions of `atexit`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    start::end();
    loop {
        // SAFETY: ends the process.
        unsafe { call3(libc::SYS_exit_group, status as usize, 0, 0) };
    }
}

/// The same under its C name.
///
/// # Safety
/// As for [`_exit`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the caller's argument.
    unsafe { _exit(status) }
}
