//! Calls that must be made in the program's own state: what they start continues there, in another
//! thread or before this one, or they change what the return from a signal handler would set back.
//!
//! For each place in the program that makes such a call there is a piece of code in the exempt range:
//! the same call, and a jump to the piece's rest elsewhere, from which execution continues behind that
//! place. The handler returns to it. libc's own places that start threads jump to such pieces, so that the kernel reports the calls of each thread
//! from its beginning, whichever of libc's functions starts it.

use crate::intercept::libc_code;
use crate::page::PAGE_BYTES;
use crate::sync::Lock;
use crate::sys;
use crate::sys::entry::{DISPATCH_ON, ENTRY, EXEMPT_BYTES, EXEMPT_START, SET_DISPATCH};
use crate::sys::signals::Blocked;
use core::arch::global_asm;
use core::ffi::c_void;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a piece: `syscall`, and `jmp` to its rest.
const BYTES: usize = 7;
/// Bytes of a rest: `mov r11, PLACE`; `mov rcx, BEHIND`; `jmp rcx`.
const REST: usize = 24;
/// Pieces of which the place is remembered.
const MOST: usize = 32;
/// Bytes of `mov eax, NUMBER` before a piece for libc.
const LOAD: usize = 5;

/// Where pieces may be written.
static ROOM: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
/// Where the piece of each index continues; 0 for none.
static PLACES: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
/// The pieces' rests: first two for libc, then one for each index.
static RESTS: AtomicU64 = AtomicU64::new(0);
static LOCK: Lock = Lock::new();

// A piece continues here, with its place in r11, which like rcx the call has changed anyway. Who got 0
// may be a new thread or process, of which the kernel does not report calls yet. It has this stack to
// itself, below the 128 bytes that a function may use without saying so. What libc starts with this
// memory and is no thread (posix_spawn) is left alone: it sets all signals back before it makes its calls.
global_asm!(
    ".globl pagewise_libc_call_returns",
    ".hidden pagewise_libc_call_returns",
    ".type pagewise_libc_call_returns, @function",
    "pagewise_libc_call_returns:",
    "test rax, rax",
    "jnz 2f",
    "push r11",
    "push rdi",
    "mov eax, {getpid}",
    "call qword ptr [rip + {entry}]",
    "mov edi, eax",
    "mov eax, {gettid}",
    "call qword ptr [rip + {entry}]",
    "cmp eax, edi",
    "pop rdi",
    "pop r11",
    "mov eax, 0",
    "jne pagewise_call_returns",
    "2: jmp r11",
    ".size pagewise_libc_call_returns, . - pagewise_libc_call_returns",
    ".globl pagewise_call_returns",
    ".hidden pagewise_call_returns",
    ".type pagewise_call_returns, @function",
    "pagewise_call_returns:",
    "test rax, rax",
    "jnz 2f",
    "lea rsp, [rsp - 128]",
    "push rdi",
    "push rsi",
    "push rdx",
    "push r10",
    "push r8",
    "push r11",
    "mov edi, {set}",
    "mov esi, {on}",
    "mov rdx, [rip + {start}]",
    "mov r10, [rip + {bytes}]",
    "xor r8d, r8d",
    "mov eax, {prctl}",
    "call qword ptr [rip + {entry}]",
    "pop r11",
    "pop r8",
    "pop r10",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "lea rsp, [rsp + 128]",
    "xor eax, eax",
    "2: jmp r11",
    ".size pagewise_call_returns, . - pagewise_call_returns",
    set = const SET_DISPATCH,
    on = const DISPATCH_ON,
    prctl = const libc::SYS_prctl,
    getpid = const libc::SYS_getpid,
    gettid = const libc::SYS_gettid,
    start = sym EXEMPT_START,
    bytes = sym EXEMPT_BYTES,
    entry = sym ENTRY,
);

unsafe extern "C" {
    fn pagewise_call_returns();
    fn pagewise_libc_call_returns();
}

/// Pieces may be written to this part of the exempt range, which is libc's `code`.
pub(super) fn use_room(mut room: Range<u64>, code: &Range<u64>) {
    let Some(rests) = sys::map(PAGE_BYTES) else {
        return;
    };
    RESTS.store(rests as u64, Ordering::Relaxed);
    for (index, number) in [libc::SYS_clone, libc::SYS_clone3].into_iter().enumerate() {
        room.start += lead_over(index, number as u32, &room, code).unwrap_or(0);
    }
    ROOM[0].store(room.start, Ordering::Relaxed);
    ROOM[1].store(room.end, Ordering::Release);
}

/// Lets libc's only call `number` that tests its result for a child jump to a piece at the start of
/// `room`. Returns the bytes that this takes; `None` if there is no such place.
fn lead_over(index: usize, number: u32, room: &Range<u64>, code: &Range<u64>) -> Option<u64> {
    // `mov eax, NUMBER`; `syscall`; `test rax, rax`.
    let mut pattern = [0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0x48, 0x85, 0xc0];
    pattern[1..LOAD].copy_from_slice(&number.to_le_bytes());
    let find = |from: u64| {
        let (text, bytes) = (from as *const c_void, (code.end - from) as usize);
        // SAFETY: libc's code can be read; the pattern lives through the call.
        let found = unsafe { libc::memmem(text, bytes, pattern.as_ptr().cast(), pattern.len()) };
        (!found.is_null()).then_some(found as u64)
    };
    let place = find(code.start)?;
    let bytes = (LOAD + BYTES) as u64;
    if find(place + 1).is_some() || room.end - room.start < bytes {
        return None;
    }
    let behind = pagewise_libc_call_returns as *const () as u64;
    let well = write_rest(index, place + LOAD as u64 + 2, behind)
        && libc_code::patch(room.start as *mut u8, &pattern[..LOAD])
        && write_piece(room.start + LOAD as u64, index)
        && libc_code::patch(place as *mut u8, &libc_code::jump(place, room.start)?);
    well.then_some(bytes)
}

/// The piece that continues at `place`; `None` if there is no room for one more.
pub(super) fn piece_for(place: u64) -> Option<u64> {
    let room = ROOM[1].load(Ordering::Acquire);
    let start = ROOM[0].load(Ordering::Relaxed);
    let count = (room.saturating_sub(start) as usize / BYTES).min(MOST);
    let address = |index: usize| start + (index * BYTES) as u64;
    let known = |index: usize| PLACES[index].load(Ordering::Acquire);
    if let Some(index) = (0..count).find(|index| known(*index) == place) {
        return Some(address(index));
    }
    let _quiet = Blocked::new();
    let _held = LOCK.hold();
    let index = (0..count).find(|index| [0, place].contains(&known(*index)))?;
    if known(index) == 0 {
        let behind = pagewise_call_returns as *const () as u64;
        if !write_rest(index + 2, place, behind) || !write_piece(address(index), index + 2) {
            return None;
        }
        PLACES[index].store(place, Ordering::Release);
    }
    Some(address(index))
}

/// Writes the piece at `address` that leads to the rest of this number.
fn write_piece(address: u64, rest: usize) -> bool {
    let mut piece = [0x0f, 0x05, 0, 0, 0, 0, 0];
    let rest = RESTS.load(Ordering::Relaxed) + (rest * REST) as u64;
    let Some(jump) = libc_code::jump(address + 2, rest) else {
        return false;
    };
    piece[2..].copy_from_slice(&jump);
    libc_code::patch(address as *mut u8, &piece)
}

/// Writes the rest of this number.
fn write_rest(number: usize, place: u64, behind: u64) -> bool {
    let address = RESTS.load(Ordering::Relaxed) + (number * REST) as u64;
    address >= PAGE_BYTES as u64 && libc_code::patch(address as *mut u8, &rest_of(place, behind))
}

fn rest_of(place: u64, behind: u64) -> [u8; REST] {
    let mut code = [0_u8; REST];
    code[..2].copy_from_slice(&[0x49, 0xbb]);
    code[2..10].copy_from_slice(&place.to_le_bytes());
    code[10..12].copy_from_slice(&[0x48, 0xb9]);
    code[12..20].copy_from_slice(&behind.to_le_bytes());
    code[20..22].copy_from_slice(&[0xff, 0xe1]);
    code
}

/// In the child of a fork nobody holds the lock.
pub(in crate::intercept) fn forked() {
    LOCK.reset();
}
