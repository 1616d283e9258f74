//! Programs that cannot be managed, recognised before they run by the first bytes of their files,
//! which are read without memory of the pager's, since this also runs in children of `vfork`.

use super::environment::{self, List};
use super::given;
use crate::figures::unmanaged;
use crate::paging::{PAGER, fatal};
use crate::sys::{self, call3, call6, close};
use core::ffi::{CStr, c_char};
use core::sync::atomic::Ordering;
use pagewise_wire::settings::VARIABLE;
use pagewise_wire::shared::Unmanaged;

/// Largest depth of nested interpreters, as in the kernel (`BINPRM_MAX_RECURSION`).
const MOST_SCRIPTS: usize = 5;
/// Bytes of a script's first line that the kernel reads (`BINPRM_BUF_SIZE`).
const LINE_BYTES: usize = 256;
const INTERPRETER: u32 = 3;
const NOTE: u32 = 4;

/// The environment with which to run the program at `path`. A program that cannot be managed is
/// reported, refused if the run is strict, and not given a library that its linker cannot load.
pub fn admit(path: *const c_char, environment: List) -> Option<List> {
    let Some(length) = given::text_length(path) else {
        return Some(environment);
    };
    // SAFETY: this many bytes are readable there.
    let path = unsafe { core::slice::from_raw_parts(path.cast::<u8>(), length) };
    let Some(why) = obstacle(path).or_else(|| cleared(path, environment)) else {
        return Some(environment);
    };
    if PAGER.choices.strict.load(Ordering::Relaxed) {
        let name = core::str::from_utf8(path).unwrap_or("a program");
        let why = words(why);
        fatal::say(format_args!("{name} is refused (--strict): {why}"));
    }
    unmanaged::note(path, why);
    match why {
        _ if PAGER.choices.strict.load(Ordering::Relaxed) => None,
        Unmanaged::OtherLibc => Some(environment::without_library(environment)),
        _ => Some(environment),
    }
}

/// Start of the name of the dynamic linker that loads this library: glibc's or musl's.
const LINKER: &[u8] = if cfg!(target_env = "musl") {
    b"ld-musl"
} else {
    b"ld-linux"
};

const fn words(why: Unmanaged) -> &'static str {
    match why {
        Unmanaged::Static => "it is linked statically",
        Unmanaged::WordSize => "it is not a 64-bit program",
        Unmanaged::OtherLibc => "it is linked with another libc",
        Unmanaged::Privileged => "it runs with its owner's rights (set-user-ID)",
        Unmanaged::Cleared => "its environment lacks what starts the pager",
        Unmanaged::Failed => "the pager cannot start in it",
        Unmanaged::Go => "it is a Go program",
    }
}

/// An open file, closed with this.
struct File(i32);

impl Drop for File {
    fn drop(&mut self) {
        close(self.0);
    }
}

impl File {
    /// Opens the file named by the bytes of `path`.
    fn open(path: &[u8]) -> Option<Self> {
        let mut name = [0_u8; libc::PATH_MAX as usize];
        let room = name.len() - 1;
        name[..room].get_mut(..path.len())?.copy_from_slice(path);
        let name = CStr::from_bytes_until_nul(&name).ok()?;
        let answer = sys::open(name, libc::O_RDONLY);
        i32::try_from(answer).ok().filter(|fd| *fd >= 0).map(Self)
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> usize {
        let (place, count) = (bytes.as_mut_ptr() as usize, bytes.len());
        // SAFETY: the buffer lives through the call.
        let answer = unsafe {
            call6(
                libc::SYS_pread64,
                self.0 as usize,
                place,
                count,
                at as usize,
                0,
                0,
            )
        };
        usize::try_from(answer).unwrap_or(0)
    }

    /// Whether it runs with privileges that its caller does not have.
    fn is_privileged(&self) -> bool {
        // SAFETY: zeros are a valid `stat`, which lives through the calls; the others take no
        // pointers.
        unsafe {
            let mut status: libc::stat = core::mem::zeroed();
            let there = call3(
                libc::SYS_fstat,
                self.0 as usize,
                &raw mut status as usize,
                0,
            ) == 0;
            let user = call3(libc::SYS_geteuid, 0, 0, 0) as u32;
            there && status.st_mode & libc::S_ISUID != 0 && status.st_uid != user
        }
    }
}

/// Why the program at `path` cannot be managed; also `None` if the file cannot be read.
fn obstacle(path: &[u8]) -> Option<Unmanaged> {
    let mut line = [0_u8; LINE_BYTES];
    let mut file = File::open(path)?;
    for _ in 0..MOST_SCRIPTS {
        let count = file.read(&mut line, 0);
        match line[..count].strip_prefix(b"#!") {
            Some(rest) => file = File::open(interpreter(rest)?)?,
            None => break,
        }
    }
    if !line.starts_with(b"\x7fELF") {
        return None;
    }
    match line[4] {
        2 => of_elf(&file, &line),
        _ => Some(Unmanaged::WordSize),
    }
}

/// The interpreter in a script's first line.
fn interpreter(line: &[u8]) -> Option<&[u8]> {
    let line = line.split(|byte| *byte == b'\n').next()?.trim_ascii_start();
    let end = |byte: &u8| matches!(byte, b' ' | b'\t' | 0);
    line.split(end).next().filter(|name| !name.is_empty())
}

fn of_elf(file: &File, head: &[u8; LINE_BYTES]) -> Option<Unmanaged> {
    if file.is_privileged() {
        return Some(Unmanaged::Privileged);
    }
    let half = |at: usize| u64::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let table = word(head, 32)?;
    let (size, count) = (half(54), half(56));
    let mut linker = None;
    for number in 0..count {
        let mut entry = [0_u8; 56];
        if file.read(&mut entry, table.checked_add(number * size)?) < entry.len() {
            return None;
        }
        let at = word(&entry, 8)?;
        match u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]) {
            INTERPRETER => linker = Some(at),
            // A note's name follows its three lengths.
            NOTE => {
                let mut note = [0_u8; 16];
                if file.read(&mut note, at) == note.len() && note[12..] == *b"Go\0\0" {
                    return Some(Unmanaged::Go);
                }
            }
            _ => {}
        }
    }
    let Some(at) = linker else {
        return Some(Unmanaged::Static);
    };
    let mut name = [0_u8; 64];
    let count = file.read(&mut name, at);
    let last = name[..count].split(|byte| *byte == 0).next()?;
    let last = last.rsplit(|byte| *byte == b'/').next()?;
    (!last.starts_with(LINKER)).then_some(Unmanaged::OtherLibc)
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let part = bytes.get(at..at + 8)?;
    part.try_into().ok().map(u64::from_le_bytes)
}

/// Whether `environment` lacks the variables that start the pager in the program at `path`.
fn cleared(path: &[u8], environment: List) -> Option<Unmanaged> {
    File::open(path)?;
    given::list_length(environment)?;
    let (mut settings, mut library) = (false, false);
    let mut at = environment;
    // SAFETY: the list is readable up to its end, and strings are read only where they are
    // readable.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            let length = given::text_length(*at)?;
            let text = core::slice::from_raw_parts((*at).cast::<u8>(), length);
            settings |= text
                .strip_prefix(VARIABLE.as_bytes())
                .is_some_and(|rest| rest.first() == Some(&b'='));
            library |= environment::preloads(text);
            at = at.add(1);
        }
    }
    (!(settings && library)).then_some(Unmanaged::Cleared)
}
