//! How a range of the program's memory is treated.

use pagewise_wire::shared::{Delivery, Why};

/// A range of the program's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// First address past it.
    pub end: u64,
    /// How it is treated.
    pub kind: Kind,
}

/// How a range is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Whether it is managed; otherwise it is only listed.
    pub managed: bool,
    /// How its faults arrive.
    pub delivery: Delivery,
    /// Why they arrive in this way.
    pub why: Why,
    /// Its role, as hinted.
    pub role: u8,
    /// Number of the region.
    pub id: u16,
    /// Not to be evicted.
    pub locked: bool,
    /// Empty in the child of a fork.
    pub wiped_on_fork: bool,
    /// Absent in the child of a fork.
    pub not_forked: bool,
    /// Owned by the program, which registered it with a userfaultfd of its own, or by the kernel as
    /// the mapping of a file: it is never managed again.
    pub ceded: bool,
    /// Address space that the program has reserved and may not access, but for a little.
    pub reserved: bool,
    /// Where a touch raises SIGSEGV (`MADV_GUARD_INSTALL`): a page that came beside another would take the guard
    /// away.
    pub guarded: bool,
    /// Number of the file that is mapped there ([`super::files`]); 0 for none.
    pub file: u16,
}

impl Kind {
    pub(super) fn bits(self) -> u64 {
        u64::from(self.managed)
            | u64::from(self.locked) << 1
            | u64::from(self.wiped_on_fork) << 2
            | u64::from(self.not_forked) << 3
            | u64::from(self.ceded) << 4
            | u64::from(self.reserved) << 5
            | u64::from(self.guarded) << 6
            | (self.delivery as u64) << 8
            | (self.why as u64) << 16
            | u64::from(self.role) << 24
            | u64::from(self.id) << 32
            | u64::from(self.file) << 48
    }

    pub(super) fn from_bits(bits: u64) -> Self {
        Self {
            managed: bits & 1 != 0,
            locked: bits & 2 != 0,
            wiped_on_fork: bits & 4 != 0,
            not_forked: bits & 8 != 0,
            ceded: bits & 16 != 0,
            reserved: bits & 32 != 0,
            guarded: bits & 64 != 0,
            delivery: match bits >> 8 & 0xff {
                1 => Delivery::Signal,
                _ => Delivery::Handler,
            },
            why: match bits >> 16 & 0xff {
                1 => Why::CommandLine,
                2 => Why::Hint,
                3 => Why::Unprivileged,
                4 => Why::Allocator,
                _ => Why::Transparent,
            },
            role: (bits >> 24) as u8,
            id: (bits >> 32) as u16,
            file: (bits >> 48) as u16,
        }
    }

    /// Whether it is not managed, but could be.
    pub(super) fn is_left_out(self) -> bool {
        !(self.managed || self.ceded || self.reserved)
    }

    /// Whether neighbours of these two kinds may become one region.
    #[must_use]
    pub fn joins(self, other: Self) -> bool {
        let other = Self {
            id: self.id,
            managed: self.managed,
            ..other
        };
        self == other
    }
}

/// For tests.
#[cfg(test)]
pub(super) const KIND: Kind = Kind {
    managed: true,
    delivery: Delivery::Handler,
    why: Why::Transparent,
    role: 0,
    id: 7,
    locked: false,
    wiped_on_fork: false,
    not_forked: false,
    ceded: false,
    reserved: false,
    guarded: false,
    file: 0,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_survives_its_bits() {
        let kind = Kind {
            delivery: Delivery::Signal,
            why: Why::Unprivileged,
            role: 5,
            locked: true,
            not_forked: true,
            ceded: true,
            reserved: true,
            guarded: true,
            ..KIND
        };
        assert_eq!(Kind::from_bits(kind.bits()), kind);
        assert!(!kind.joins(KIND) && kind.joins(Kind { id: 9, ..kind }));
    }
}
