//! What is noted of a piece of a mapped file that was paged out: how soon its pages come back tells
//! whether it is in use.

/// Fewer resident pages of a piece are left alone: the kernel maps up to 16 around each fault
/// (`fault_around_bytes`, 64 KiB).
pub(super) const LEAST_PAGES: u32 = 16;
/// A piece is left alone for this long after it was paged out, and for up to 2^`MOST_REST` times as
/// long if its pages come back. Milliseconds.
const REST_MS: u64 = 2_000;
const MOST_REST: u64 = 8;
/// One part in this many that comes back soon means that a piece is in use.
const IN_USE: u32 = 4;

/// What happened to a piece when it was last paged out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Note {
    /// When, in milliseconds of the monotonic clock.
    pub(super) out_ms: u64,
    /// Pages that went.
    pub(super) went: u32,
    /// Pages that stayed.
    pub(super) stayed: u32,
    /// Base-2 logarithm of how many times [`REST_MS`] it is left alone.
    rest: u64,
    /// Whether its pages have been seen to come back since.
    came_back: bool,
}

impl Note {
    /// 39 bits of time (17 years), twice 10 bits of pages, 4 bits of rest, one bit.
    pub(super) fn to_word(self) -> u64 {
        self.out_ms << 25
            | u64::from(self.went) << 15
            | u64::from(self.stayed) << 5
            | self.rest << 1
            | u64::from(self.came_back)
    }

    pub(super) fn from_word(word: u64) -> Self {
        Self {
            out_ms: word >> 25,
            went: (word >> 15 & 0x3ff) as u32,
            stayed: (word >> 5 & 0x3ff) as u32,
            rest: word >> 1 & 0xf,
            came_back: word & 1 != 0,
        }
    }

    /// Pages that have come back, of those that went.
    fn returned(self, resident: u32) -> u32 {
        resident.saturating_sub(self.stayed).min(self.went)
    }

    /// A look at the piece, which has `resident` pages of its file: notes whether it is in use.
    /// Returns the pages that have newly been seen to have come back, and whether it is to be paged
    /// out (again), which happens to a piece in use only if it `must`.
    pub(super) fn look(&mut self, resident: u32, now_ms: u64, must: bool) -> (u32, bool) {
        let returned = self.returned(resident);
        let rests = now_ms < self.out_ms + (REST_MS << self.rest);
        let mut seen = 0;
        if rests && !self.came_back && returned * IN_USE >= self.went && returned > 0 {
            self.came_back = true;
            self.rest = (self.rest + 1).min(MOST_REST);
            seen = returned;
        }
        let worthwhile = resident.saturating_sub(self.stayed) >= LEAST_PAGES;
        (seen, worthwhile && (must || !rests))
    }

    /// It was paged out again: `before` pages were resident, `after` still are.
    pub(super) fn paged_out(self, before: u32, after: u32, now_ms: u64) -> Self {
        let went = before.saturating_sub(after);
        let rest = match (went, self.came_back) {
            // The kernel does not let them go, and hardly will.
            (0, _) => MOST_REST,
            (_, true) => self.rest,
            (_, false) => self.rest.saturating_sub(1),
        };
        Self {
            out_ms: now_ms,
            went,
            stayed: after,
            rest,
            came_back: false,
        }
    }

    /// It could not be unmapped at this moment: tried again after its usual rest.
    pub(super) fn postponed(self, now_ms: u64) -> Self {
        Self {
            out_ms: now_ms,
            went: 0,
            stayed: 0,
            came_back: false,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_fit_into_a_word() {
        let note = Note {
            out_ms: 1 << 38,
            went: 512,
            stayed: 511,
            rest: MOST_REST,
            came_back: true,
        };
        assert_eq!(Note::from_word(note.to_word()), note);
    }

    #[test]
    fn a_piece_in_use_is_left_alone_for_longer_each_time() {
        let mut note = Note::default().paged_out(500, 100, 1_000_000);
        assert_eq!((note.went, note.stayed, note.rest), (400, 100, 0));
        let mut now = 1_000_000;
        let mut rests = Vec::new();
        for _ in 0..11 {
            let out = now;
            loop {
                now += 100;
                // All of it comes back at once.
                let (_, wanted) = note.look(500, now, false);
                if wanted {
                    break;
                }
            }
            rests.push((now - out) / 1000);
            note = note.paged_out(500, 100, now);
        }
        assert_eq!(rests, [4, 8, 16, 32, 64, 128, 256, 512, 512, 512, 512]);
        // One that stays away for as long may go again sooner.
        let (back, wanted) = note.look(100, now + 600_000, false);
        assert_eq!((back, wanted), (0, false));
        assert_eq!(note.paged_out(500, 100, now).rest, MOST_REST - 1);
    }

    #[test]
    fn a_piece_that_the_kernel_keeps_is_left_for_a_while() {
        let mut note = Note::default().paged_out(300, 300, 5_000);
        assert_eq!(note.rest, MOST_REST);
        assert_eq!(note.look(300, 10_000, true), (0, false));
        assert_eq!(note.look(300, 10_000_000, false), (0, false));
        let mut note = Note::default().postponed(5_000);
        assert_eq!(note.look(300, 6_000, false), (0, false));
        assert_eq!(note.look(300, 5_000 + REST_MS, false), (0, true));
    }

    #[test]
    fn what_comes_back_is_counted_once() {
        let mut note = Note::default().paged_out(300, 0, 5_000);
        assert_eq!(note.look(50, 5_500, false), (0, false));
        assert_eq!(note.look(200, 6_000, false), (200, false));
        assert_eq!(note.look(250, 6_500, false), (0, false));
        assert_eq!(note.look(250, 6_500, true), (0, true), "it must go");
        assert_eq!(note.look(250, 9_100, false), (0, true));
    }
}
