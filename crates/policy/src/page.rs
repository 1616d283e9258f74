//! Types shared by the core and the policies: pages, faults, uses, and read-ahead plans.

/// Index of a managed page. Every region has a run of consecutive indices, so neighbours in memory
/// are neighbours here; runs of different regions are never adjacent.
pub type Page = u32;

/// Largest number of pages that can be managed (512 GiB of 4 KiB pages): a page's word keeps 27
/// bits for a link, and a few indices stand for the ends of queues.
pub const MAX_PAGES: u32 = (1 << 27) - 64;

/// A run of pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// First page of the run.
    pub first: Page,
    /// Number of pages; 0 is an empty run.
    pub count: u32,
}

impl Span {
    /// The page after the last one.
    #[must_use]
    pub const fn end(self) -> Page {
        self.first.saturating_add(self.count)
    }

    /// Whether `page` is in the run.
    #[must_use]
    pub const fn contains(self, page: Page) -> bool {
        page >= self.first && page < self.end()
    }

    /// The part of this run inside `other`.
    #[must_use]
    pub fn clipped(self, other: Span) -> Span {
        let first = self.first.max(other.first);
        let end = self.end().min(other.end());
        Span {
            first,
            count: end.saturating_sub(first),
        }
    }
}

/// Why a page was missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Never written before: it will be a page of zeros.
    FirstTouch,
    /// Evicted earlier: its content comes from the store.
    Refault,
}

/// A fault on a missing page, with a thread waiting for it.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// The page.
    pub page: Page,
    /// All pages of its region.
    pub region: Span,
    /// Number of the region, in order of registration.
    pub region_id: u16,
    /// The faulting thread: any number that identifies it.
    pub thread: u32,
    /// First touch or refault.
    pub kind: FaultKind,
    /// Whether the access was a write.
    pub write: bool,
    /// Whether the page is one of a mapped file, where its neighbours lie beside it on the disk.
    pub in_file: bool,
}

/// How a page became resident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// A thread waited for it.
    Demand,
    /// It was read ahead.
    Ahead,
}

/// A use of a resident page that the core has seen. Most uses are invisible in user space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// A watched page was touched.
    Touch,
    /// A clean page was written.
    Write,
}

/// The access pattern that a program declares for a range of its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Nothing is known.
    #[default]
    Normal,
    /// Used all the time: evicted last.
    Hot,
    /// Read or written once in order: read far ahead, evicted first.
    Stream,
    /// No order: read-ahead is useless.
    Random,
    /// Offsets of a compressed sparse row matrix: hot and in order.
    CsrOffsets,
    /// Edges of a compressed sparse row matrix: a stream that is read repeatedly.
    CsrEdges,
}

impl Role {
    /// Number of the role in the C interface.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Role::Normal => 0,
            Role::Hot => 1,
            Role::Stream => 2,
            Role::Random => 3,
            Role::CsrOffsets => 4,
            Role::CsrEdges => 5,
        }
    }

    /// The role with this number in the C interface.
    #[must_use]
    pub const fn from_code(code: u32) -> Option<Role> {
        Some(match code {
            0 => Role::Normal,
            1 => Role::Hot,
            2 => Role::Stream,
            3 => Role::Random,
            4 => Role::CsrOffsets,
            5 => Role::CsrEdges,
            _ => return None,
        })
    }
}

/// Most spans in a plan.
pub const MAX_AHEAD: usize = 64;

/// What to read at a fault in addition to the page itself. Lives on the faulting thread's stack.
#[derive(Debug)]
pub struct Plan {
    /// Read and mapped together with the faulted page, in one operation; contains that page.
    pub along: Span,
    ahead: [Span; MAX_AHEAD],
    spans: usize,
}

impl Plan {
    /// Only the faulted page.
    #[must_use]
    pub const fn only(page: Page) -> Self {
        Plan {
            along: Span {
                first: page,
                count: 1,
            },
            ahead: [Span { first: 0, count: 0 }; MAX_AHEAD],
            spans: 0,
        }
    }

    /// Also reads `span`, without making the fault wait. Adjacent spans are merged. Returns whether
    /// there was room.
    pub fn read_ahead(&mut self, span: Span) -> bool {
        if span.count == 0 {
            return true;
        }
        if let Some(last) = self.ahead[..self.spans].last_mut()
            && last.end() == span.first
        {
            last.count += span.count;
            return true;
        }
        if self.spans == MAX_AHEAD {
            return false;
        }
        self.ahead[self.spans] = span;
        self.spans += 1;
        true
    }

    /// The spans to read asynchronously, in the order in which they will be needed.
    #[must_use]
    pub fn ahead(&self) -> &[Span] {
        &self.ahead[..self.spans]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_join_adjacent_spans_and_refuse_what_does_not_fit() {
        let mut plan = Plan::only(7);
        assert!(plan.read_ahead(Span { first: 8, count: 2 }));
        assert!(plan.read_ahead(Span {
            first: 10,
            count: 1
        }));
        assert_eq!(plan.ahead(), [Span { first: 8, count: 3 }]);
        for page in (1..).take(MAX_AHEAD - 1) {
            assert!(plan.read_ahead(Span {
                first: page * 100,
                count: 1
            }));
        }
        assert!(!plan.read_ahead(Span {
            first: 9_999,
            count: 1
        }));
        assert_eq!(plan.ahead().len(), MAX_AHEAD);
    }

    #[test]
    fn a_role_survives_the_c_interface() {
        for code in 0..6 {
            assert_eq!(Role::from_code(code).map(Role::code), Some(code));
        }
        assert_eq!(Role::from_code(6), None);
    }

    #[test]
    fn spans_are_clipped_to_their_region() {
        let region = Span {
            first: 100,
            count: 10,
        };
        assert_eq!(
            Span {
                first: 90,
                count: 15
            }
            .clipped(region),
            Span {
                first: 100,
                count: 5
            }
        );
        assert_eq!(
            Span {
                first: 200,
                count: 5
            }
            .clipped(region)
            .count,
            0
        );
    }
}
