//! The core's state of a page, in four bytes.
//!
//! ```text
//!   31   30    28 27                          0
//!  ┌────┬────────┬─────────────────────────────┐
//!  │busy│ state  │ slot in the store, or place │
//!  └────┴────────┴─────────────────────────────┘
//! ```
//!
//! Busy is the page's lock: one thread works on it, others sleep on the word (see [`super::page`]).
//! State and slot keep their former value meanwhile, so that a fork finds the page's state.

/// A page's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Word(pub u32);

/// The state of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// No contents: never touched, or given back. Zero, so that this is the state in fresh
    /// metadata.
    Empty = 0,
    /// Resident, writable, not in the store.
    Dirty = 1,
    /// Resident, write-protected, and identical to its slot.
    Clean = 2,
    /// Only in its slot.
    Evicted = 3,
    /// Moved out to the tray (the slot field is its place there), while it is being written. A
    /// touch fetches it back.
    Parked = 4,
    /// Resident, write-protected, and identical to the file that is mapped there.
    File = 5,
    /// Only in that file, and resident before.
    Left = 6,
}

const BUSY: u32 = 1 << 31;
const STATE_SHIFT: u32 = 28;
const SLOT_MASK: u32 = (1 << STATE_SHIFT) - 1;

impl Word {
    /// A page without contents.
    pub const EMPTY: Self = Self(0);

    /// A page in `state`, with its slot or place (0 where the state has none).
    #[must_use]
    pub const fn new(state: State, slot: u32) -> Self {
        Self((state as u32) << STATE_SHIFT | (slot & SLOT_MASK))
    }

    /// Its state.
    #[must_use]
    pub const fn state(self) -> State {
        match self.0 >> STATE_SHIFT & 7 {
            1 => State::Dirty,
            2 => State::Clean,
            3 => State::Evicted,
            4 => State::Parked,
            5 => State::File,
            6 => State::Left,
            _ => State::Empty,
        }
    }

    /// Its slot or place.
    #[must_use]
    pub const fn slot(self) -> u32 {
        self.0 & SLOT_MASK
    }

    /// Whether a thread works on it.
    #[must_use]
    pub const fn is_busy(self) -> bool {
        self.0 & BUSY != 0
    }

    /// The same, locked.
    #[must_use]
    pub const fn busy(self) -> Self {
        Self(self.0 | BUSY)
    }

    /// The same, unlocked.
    #[must_use]
    pub const fn idle(self) -> Self {
        Self(self.0 & !BUSY)
    }

    /// Whether its contents take memory.
    #[must_use]
    pub const fn is_resident(self) -> bool {
        matches!(
            self.state(),
            State::Dirty | State::Clean | State::Parked | State::File
        )
    }

    /// Whether it owns a reference to its slot. A page that was given up has none.
    #[must_use]
    pub const fn owns_slot(self) -> bool {
        matches!(self.state(), State::Clean | State::Evicted) && self.slot() != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_slot_and_lock_do_not_disturb_each_other() {
        for state in [
            State::Empty,
            State::Dirty,
            State::Clean,
            State::Evicted,
            State::Parked,
            State::File,
            State::Left,
        ] {
            let word = Word::new(state, SLOT_MASK).busy();
            assert!(word.is_busy() && !word.idle().is_busy());
            assert_eq!((word.state(), word.slot()), (state, SLOT_MASK));
        }
        assert_eq!(Word::EMPTY.state(), State::Empty);
    }
}
