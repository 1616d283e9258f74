//! The environment for a program whose dynamic linker must not see the pager's library: that of
//! another libc aborts the program because of it.

use super::given;
use crate::sys;
use core::ffi::c_char;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

pub type List = *const *const c_char;

/// Number of lists that may be in use at a time. A child of `vfork` uses its parent's memory up to
/// its exec and cannot give a list back afterwards: so they are used in turn, each for one exec.
const LISTS: usize = 64;
/// Bytes of a list with its texts.
const BYTES: usize = 128 << 10;
/// Of these, bytes for texts.
const TEXT_BYTES: usize = 32 << 10;
const WORDS: usize = (BYTES - TEXT_BYTES) / size_of::<*const c_char>();

static ROOM: [AtomicPtr<u8>; LISTS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; LISTS];
static NEXT: AtomicUsize = AtomicUsize::new(0);

const PRELOAD: &[u8] = b"LD_PRELOAD=";
const LIBRARY: &[u8] = b"pagewise_pager";

/// Whether `text` preloads the pager's library.
pub fn preloads(text: &[u8]) -> bool {
    text.starts_with(PRELOAD) && contains(text, LIBRARY)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// `list` without the pager's library; the same list if nothing has to be removed, or if it cannot
/// be read or copied.
pub fn without_library(list: List) -> List {
    without(list).unwrap_or(list)
}

fn without(list: List) -> Option<List> {
    let count = given::list_length(list)?;
    // SAFETY: the list has this many entries.
    let entries = unsafe { core::slice::from_raw_parts(list, count) };
    let found = entries
        .iter()
        .position(|&text| bytes_of(text).is_some_and(preloads))?;
    let text = bytes_of(entries[found])?;
    if count >= WORDS || text.len() >= TEXT_BYTES {
        return None;
    }
    let place = room()?;
    // SAFETY: the memory belongs to this call, is aligned, and is large enough as measured above.
    let (words, texts) = unsafe {
        (
            core::slice::from_raw_parts_mut(place.cast::<*const c_char>(), count + 1),
            core::slice::from_raw_parts_mut(place.add(BYTES - TEXT_BYTES), TEXT_BYTES),
        )
    };
    words[..count].copy_from_slice(entries);
    words[count] = core::ptr::null();
    match others(text, texts) {
        true => words[found] = texts.as_ptr().cast(),
        false => words.copy_within(found + 1.., found),
    }
    Some(words.as_ptr())
}

/// The bytes of a text; `None` if it cannot be read.
fn bytes_of(text: *const c_char) -> Option<&'static [u8]> {
    let length = given::text_length(text)?;
    // SAFETY: this many bytes are readable there.
    Some(unsafe { core::slice::from_raw_parts(text.cast(), length) })
}

/// Writes `text` to `to` without the pager's library; returns whether another library remains in
/// it.
fn others(text: &[u8], to: &mut [u8]) -> bool {
    let separates = |byte: &u8| matches!(byte, b':' | b' ');
    let names = text[PRELOAD.len()..].split(separates);
    let mut length = PRELOAD.len();
    to[..length].copy_from_slice(PRELOAD);
    for name in names.filter(|name| !name.is_empty() && !contains(name, LIBRARY)) {
        if length > PRELOAD.len() {
            to[length] = b':';
            length += 1;
        }
        to[length..length + name.len()].copy_from_slice(name);
        length += name.len();
    }
    to[length] = 0;
    length > PRELOAD.len()
}

/// The next list in turn.
fn room() -> Option<*mut u8> {
    let turn = NEXT.fetch_add(1, Ordering::Relaxed) % LISTS;
    let there = ROOM[turn].load(Ordering::Acquire);
    if !there.is_null() {
        return Some(there);
    }
    let made = sys::map(BYTES)?;
    ROOM[turn].store(made, Ordering::Release);
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    fn texts(list: List) -> Vec<String> {
        let count = given::list_length(list).expect("it can be read");
        // SAFETY: this many entries.
        let entries = unsafe { core::slice::from_raw_parts(list, count) };
        let text = |one: &*const c_char| bytes_of(*one).expect("it can be read").to_vec();
        entries
            .iter()
            .map(|one| String::from_utf8(text(one)).expect("it is text"))
            .collect()
    }

    fn stripped(all: &[&str]) -> Vec<String> {
        let owned: Vec<CString> = all
            .iter()
            .map(|one| CString::new(*one).expect("text"))
            .collect();
        let mut list: Vec<*const c_char> = owned.iter().map(|one| one.as_ptr()).collect();
        list.push(core::ptr::null());
        texts(without_library(list.as_ptr()))
    }

    #[test]
    fn the_library_alone_is_taken_out() {
        let library = "LD_PRELOAD=/cache/libpagewise_pager-1.so";
        assert_eq!(stripped(&["A=1", library, "B=2"]), ["A=1", "B=2"]);
        let others = "LD_PRELOAD=one.so:/cache/libpagewise_pager-1.so two.so";
        assert_eq!(
            stripped(&[others, "B=2"]),
            ["LD_PRELOAD=one.so:two.so", "B=2"]
        );
        let none = ["A=1", "LD_PRELOAD=one.so"];
        assert_eq!(stripped(&none), none);
    }
}
