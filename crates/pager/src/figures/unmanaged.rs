//! Programs of a run that are not managed: reported to the command, which prints them at the end.

use super::places;
use crate::sys;
use core::sync::atomic::Ordering;
use pagewise_wire::shared::{Run, UNMANAGED_WORDS, Unmanaged, UnmanagedPlace};

/// A program's name, as far as it fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Name([u64; UNMANAGED_WORDS]);

impl Name {
    /// The last part of `path`.
    #[must_use]
    pub fn from_path(path: &[u8]) -> Self {
        let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let mut bytes = [0; UNMANAGED_WORDS * 8];
        let count = last.len().min(bytes.len() - 1);
        bytes[..count].copy_from_slice(&last[..count]);
        let word = |at: usize| u64::from_le_bytes(core::array::from_fn(|i| bytes[at * 8 + i]));
        Self(core::array::from_fn(word))
    }

    fn is_in(self, place: &UnmanagedPlace) -> bool {
        let words = self.0.iter().zip(&place.name);
        words
            .into_iter()
            .all(|(own, there)| *own == there.load(Ordering::Relaxed))
    }
}

/// This process's program is not managed.
pub fn note_own(why: Unmanaged) {
    let mut path = [0_u8; 4096];
    let link = c"/proc/self/exe".as_ptr() as usize;
    // SAFETY: the path ends with a zero, and the buffer lives through the call.
    let length = unsafe {
        let place = path.as_mut_ptr() as usize;
        sys::call3(libc::SYS_readlink, link, place, path.len())
    };
    let length = usize::try_from(length).unwrap_or(0);
    note(&path[..length], why);
}

/// The program at `path` is not managed.
pub fn note(path: &[u8], why: Unmanaged) {
    if let Some(run) = places::run() {
        count(run, Name::from_path(path), why);
    }
}

/// Counts it; the last word of a name is written before its count, so that a reader never finds
/// half a name.
fn count(run: &Run, name: Name, why: Unmanaged) {
    for place in &run.unmanaged {
        let free =
            place
                .reason
                .compare_exchange(0, why as u32, Ordering::AcqRel, Ordering::Acquire);
        match free {
            Ok(_) => {
                let words = place.name.iter().zip(name.0);
                words.for_each(|(there, word)| there.store(word, Ordering::Relaxed));
            }
            Err(reason) if reason == why as u32 && name.is_in(place) => {}
            Err(_) => continue,
        }
        place.count.fetch_add(1, Ordering::Release);
        return;
    }
    run.more_unmanaged.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_counted_by_name_and_reason() {
        // SAFETY: it consists of atomics, for which zeros are valid.
        let run: &Run = Box::leak(unsafe { Box::<Run>::new_zeroed().assume_init() });
        for path in ["/bin/one", "/sbin/one", "two"] {
            count(run, Name::from_path(path.as_bytes()), Unmanaged::Static);
        }
        count(run, Name::from_path(b"one"), Unmanaged::Go);
        let counts = |at: usize| run.unmanaged[at].count.load(Ordering::Relaxed);
        assert_eq!([0, 1, 2, 3].map(counts), [2, 1, 1, 0]);
        for number in 0..20 {
            count(
                run,
                Name::from_path(format!("{number}").as_bytes()),
                Unmanaged::Static,
            );
        }
        assert_eq!(run.more_unmanaged.load(Ordering::Relaxed), 20 - 13);
    }
}
