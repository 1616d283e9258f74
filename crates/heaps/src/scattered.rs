//! Words of another process's memory in no order: the pages read last are kept.

use super::{Hole, Image, Source};
use pagewise_model::memory::{PageState, Presence};

/// Pages that are kept, each in the place that its number gives: 4 MiB of pages of 4 KiB.
const KEPT: usize = 1024;

/// A process's memory, of which [`KEPT`] pages are remembered.
pub(super) struct Scattered<'a> {
    source: &'a dyn Source,
    presence: &'a Presence,
    page: u64,
    /// Start and bytes.
    kept: Vec<(u64, Vec<u8>)>,
}

impl<'a> Scattered<'a> {
    /// The memory behind `image`.
    pub fn new(image: &Image<'a>) -> Self {
        Self {
            source: image.source(),
            presence: image.presence(),
            page: image.page(),
            kept: vec![(u64::MAX, Vec::new()); KEPT],
        }
    }

    /// The same memory, with pages of its own.
    pub fn again(&self) -> Self {
        Self {
            kept: vec![(u64::MAX, Vec::new()); KEPT],
            ..*self
        }
    }

    /// The pages that are present.
    pub fn presence(&self) -> &'a Presence {
        self.presence
    }

    /// The eight bytes at `address`, which must be a multiple of eight.
    ///
    /// # Errors
    /// [`Hole`].
    pub fn word(&mut self, address: u64) -> Result<u64, Hole> {
        let start = address / self.page * self.page;
        let place = usize::try_from(address / self.page).unwrap_or(0) % KEPT;
        if self.kept[place].0 != start {
            self.read(place, start)?;
        }
        let at = usize::try_from(address - start).map_err(|_| Hole::Absent)?;
        let bytes = self.kept[place].1.get(at..at + 8).ok_or(Hole::Absent)?;
        Ok(u64::from_le_bytes(
            bytes.try_into().map_err(|_| Hole::Absent)?,
        ))
    }

    /// Forgets the page of `address`, because it may have changed.
    pub fn forget(&mut self, address: u64) {
        let place = usize::try_from(address / self.page).unwrap_or(0) % KEPT;
        self.kept[place].0 = u64::MAX;
    }

    fn read(&mut self, place: usize, start: u64) -> Result<(), Hole> {
        let run = self.presence.at(start).ok_or(Hole::Absent)?;
        if run.state == PageState::Swapped {
            return Err(Hole::Swapped);
        }
        let length = usize::try_from(self.page).map_err(|_| Hole::Absent)?;
        let (kept, bytes) = &mut self.kept[place];
        *kept = u64::MAX;
        bytes.resize(length, 0);
        self.source.read(start, bytes).map_err(Hole::from_error)?;
        *kept = start;
        Ok(())
    }
}
