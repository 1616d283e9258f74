//! The interface of engines.

use super::counts::Counts;
use super::machine::{PageSize, Stage};
use super::visit::Visit;

/// The initial state of an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Page size of chunks that were not remapped.
    pub first: PageSize,
    /// The same for the second stage; `None` for a native process.
    pub second: Option<PageSize>,
    /// Whether the host's virtual and the guest's physical addresses have the same offset inside a
    /// huge page. If not, the second stage's entries are small whatever the host's page size.
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

    /// A guest's process whose memory is aligned in the host.
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
    /// Size of second-stage entries that the host's pages allow.
    pub(super) fn second_entries(&self) -> PageSize {
        match self.second {
            Some(PageSize::Huge) if self.is_aligned => PageSize::Huge,
            _ => PageSize::Small,
        }
    }
}

/// Number of an address space, in the order of [`Engine::add`].
pub type SpaceId = u16;

/// Simulates accesses.
///
/// Memory is handled in chunks of a huge page's size. A guest's chunks get physical memory in the
/// order of first access, one whole chunk each, so that a chunk's virtual number identifies it at
/// both stages.
pub trait Engine {
    /// Adds an address space.
    fn add(&mut self, space: Space) -> SpaceId;

    /// Simulates accesses of one space in order.
    fn access(&mut self, space: SpaceId, addresses: &[u64]);

    /// Simulates visits of one space in order; the counts are the same as with single accesses.
    fn access_visits(&mut self, space: SpaceId, visits: &[Visit]) {
        for visit in visits {
            for _ in 0..visit.accesses() {
                self.access(space, &[visit.address()]);
            }
        }
    }

    /// Changes the page size of a chunk (address / huge page size) at one stage and drops its TLB
    /// entries: those of that stage and the ones derived from them. After a change of the second
    /// stage, drops all derived entries of the guest, since a host can't name them individually.
    fn remap(&mut self, space: SpaceId, stage: Stage, chunk: u64, size: PageSize);

    /// The events since the start.
    fn counts(&self) -> Counts;
}
