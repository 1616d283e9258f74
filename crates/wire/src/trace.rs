//! A recorded sequence of page events: one [`Header`], then [`Record`]s to the end of the file.

/// First eight bytes of a trace.
pub const MAGIC: [u8; 8] = *b"PWFAULTS";

/// Head of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`crate::VERSION`].
    pub version: u32,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Pages that the budget allowed.
    pub budget_pages: u64,
    /// The process.
    pub pid: u32,
    /// Zero.
    pub reserved: u32,
}

/// One event of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// Monotonic clock, nanoseconds.
    pub time_ns: u64,
    /// Page number (address divided by the page size) in the upper 56 bits, [`Event`] in the lower 8.
    page_and_event: u64,
}

/// What happened to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Event {
    /// First touch, by a read.
    FirstRead = 1,
    /// First touch, by a write.
    FirstWrite = 2,
    /// Read of a page that was evicted.
    Refault = 3,
    /// Write to a page that was evicted.
    RefaultWrite = 4,
    /// First write to a page that was clean.
    Dirtied = 5,
    /// Read in ahead of any access.
    Prefetched = 6,
    /// A sample that was taken away was touched.
    Sampled = 7,
    /// Evicted without writing.
    Dropped = 8,
    /// Evicted after writing.
    Evicted = 9,
    /// Given back by the program.
    Removed = 10,
}

impl Event {
    /// All of them, by their number minus one.
    pub const ALL: [Self; 10] = [
        Self::FirstRead,
        Self::FirstWrite,
        Self::Refault,
        Self::RefaultWrite,
        Self::Dirtied,
        Self::Prefetched,
        Self::Sampled,
        Self::Dropped,
        Self::Evicted,
        Self::Removed,
    ];
}

impl Record {
    /// An event of the page with the number `page`.
    #[must_use]
    pub const fn new(time_ns: u64, page: u64, event: Event) -> Self {
        Self {
            time_ns,
            page_and_event: page << 8 | event as u64,
        }
    }

    /// The page's number.
    #[must_use]
    pub const fn page(self) -> u64 {
        self.page_and_event >> 8
    }

    /// What happened; none for a number that this version does not know.
    #[must_use]
    pub fn event(self) -> Option<Event> {
        let number = (self.page_and_event & 0xff) as usize;
        Event::ALL.get(number.wrapping_sub(1)).copied()
    }

    /// The record in eight and eight bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        let value = (self.page_and_event as u128) << 64 | self.time_ns as u128;
        value.to_le_bytes()
    }

    /// A record out of its bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        let value = u128::from_le_bytes(bytes);
        Self {
            time_ns: (value & u64::MAX as u128) as u64,
            page_and_event: (value >> 64) as u64,
        }
    }
}

const _: () = assert!(size_of::<Header>() == 32);
const _: () = assert!(size_of::<Record>() == 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_its_bytes() {
        for event in Event::ALL {
            let record = Record::new(7, 0x7_ffff_ffff, event);
            let back = Record::from_bytes(record.to_bytes());
            assert_eq!((back.time_ns, back.page()), (7, 0x7_ffff_ffff));
            assert_eq!(back.event(), Some(event));
        }
        assert_eq!(Record::from_bytes([0; 16]).event(), None);
    }
}
