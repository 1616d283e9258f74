//! The interface of engines.

use super::counts::Counts;
use super::visit::Visit;

/// A page size of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageSize {
    /// The base page.
    Small,
    /// The next size up, which transparent huge pages use.
    Huge,
}

/// Which translation a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Of the program's or guest's virtual addresses.
    First,
    /// Of a guest's physical addresses.
    Second,
}

/// An address space as it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Page size of chunks that were not remapped.
    pub first: PageSize,
    /// The same of the second stage; `None` for a native process.
    pub second: Option<PageSize>,
    /// Whether the host's virtual and the guest's physical addresses have the same place inside a
    /// huge page. Where not, the second stage's entries are small whatever the host's pages are.
    pub is_aligned: bool,
}

impl Space {
    /// A native process.
    #[must_use]
    pub fn native(first: PageSize) -> Self {
        Self {
            first,
            second: None,
            is_aligned: true,
        }
    }

    /// A guest's process, its memory aligned in the host.
    #[must_use]
    pub fn guest(first: PageSize, second: PageSize) -> Self {
        Self {
            first,
            second: Some(second),
            is_aligned: true,
        }
    }
}

impl Space {
    /// Size of second-stage entries that its host's pages allow.
    pub(super) fn second_entries(&self) -> PageSize {
        match self.second {
            Some(PageSize::Huge) if self.is_aligned => PageSize::Huge,
            _ => PageSize::Small,
        }
    }
}

/// Number of an address space, in order of [`Engine::add`].
pub type SpaceId = u16;

/// Simulates accesses.
///
/// Memory is dealt with in chunks of a huge page's size. A guest's chunks get physical memory in
/// the order of their first access, one whole chunk each, so that a chunk is known by its virtual
/// number at both stages.
pub trait Engine {
    /// Adds an address space.
    fn add(&mut self, space: Space) -> SpaceId;

    /// Simulates accesses of one space in order.
    fn access(&mut self, space: SpaceId, addresses: &[u64]);

    /// Simulates visits of accesses of one space in order, to the same counts as one by one.
    fn access_visits(&mut self, space: SpaceId, visits: &[Visit]) {
        for visit in visits {
            for _ in 0..visit.accesses() {
                self.access(space, &[visit.address()]);
            }
        }
    }

    /// Changes the page size of a chunk (address / huge page size) at one stage and drops what TLBs
    /// hold of it: the chunk's entries of that stage and what was derived from them; after a change
    /// of the second stage all the guest's derived entries, since a host can't name them.
    fn remap(&mut self, space: SpaceId, stage: Stage, chunk: u64, size: PageSize);

    /// What happened since the start.
    fn counts(&self) -> Counts;
}
