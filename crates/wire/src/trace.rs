//! A recorded sequence of page events: one [`Header`], then [`Record`]s to the end of the file.
//!
//! Pages are numbered as in the pager, and the numbers differ from run to run with the layout of
//! the address space. [`Event::Region`] gives the start of a region in that numbering, before any
//! other event of the region, so that pages of two runs can be matched by region and offset.

/// Version of traces.
pub const VERSION: u32 = 3;
/// First eight bytes of a trace.
pub const MAGIC: [u8; 8] = *b"PWFAULTS";

/// Head of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
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

impl Header {
    /// Bytes of a header.
    pub const BYTES: usize = size_of::<Header>();

    /// The header in the file.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let (magic, rest) = bytes.split_at_mut(8);
        magic.copy_from_slice(&self.magic);
        let fields = [
            u64::from(self.page_bytes) << 32 | u64::from(self.version),
            self.budget_pages,
            u64::from(self.reserved) << 32 | u64::from(self.pid),
        ];
        for (place, field) in rest.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// The header from its bytes; `None` if they do not start with [`MAGIC`].
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let half = |at: usize| {
            let place = bytes.get(at..)?.first_chunk::<4>()?;
            Some(u32::from_le_bytes(*place))
        };
        let magic = *bytes.first_chunk::<8>()?;
        (magic == MAGIC).then_some(Header {
            magic,
            version: half(8)?,
            page_bytes: half(12)?,
            budget_pages: u64::from(half(20)?) << 32 | u64::from(half(16)?),
            pid: half(24)?,
            reserved: half(28)?,
        })
    }
}

/// One event of one page.
///
/// ```text
///  second word:  63..52 thread │ 51..40 region │ 39..8 page │ 7..0 event
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// Monotonic clock, nanoseconds.
    pub time_ns: u64,
    what: u64,
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
    /// A sampled page that was out of reach was touched.
    Sampled = 7,
    /// Evicted without writing.
    Dropped = 8,
    /// Evicted after writing.
    Evicted = 9,
    /// Given back by the program.
    Removed = 10,
    /// The page is the first one of the region.
    Region = 11,
    /// The page number is the count of pages of the region.
    RegionPages = 12,
    /// Any read, from a source that sees all accesses.
    Read = 13,
    /// Any write, from a source that sees all accesses.
    Write = 14,
    /// The region is a mapped file, whose pages have contents before their first touch.
    RegionOfFile = 15,
}

impl Event {
    /// All of them, by their number minus one.
    pub const ALL: [Self; 15] = [
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
        Self::Region,
        Self::RegionPages,
        Self::Read,
        Self::Write,
        Self::RegionOfFile,
    ];
}

impl Record {
    /// Bytes of a record.
    pub const BYTES: usize = size_of::<Record>();

    /// An event of the page with the number `page` (below 2³²), in region 0 by thread 0.
    #[must_use]
    pub const fn new(time_ns: u64, page: u64, event: Event) -> Self {
        Self {
            time_ns,
            what: (page & 0xffff_ffff) << 8 | event as u64,
        }
    }

    /// The same in this region; all numbers from 4095 on are stored as 4095.
    #[must_use]
    pub const fn in_region(self, region: u16) -> Self {
        let region = if region < 0xfff { region as u64 } else { 0xfff };
        Self {
            what: self.what & !(0xfff << 40) | region << 40,
            ..self
        }
    }

    /// The same by this thread; only the low twelve bits count.
    #[must_use]
    pub const fn by_thread(self, thread: u32) -> Self {
        Self {
            what: self.what & !(0xfff << 52) | (thread as u64 & 0xfff) << 52,
            ..self
        }
    }

    /// The page's number.
    #[must_use]
    pub const fn page(self) -> u64 {
        self.what >> 8 & 0xffff_ffff
    }

    /// The number of the region.
    #[must_use]
    pub const fn region(self) -> u16 {
        self.field(40)
    }

    /// The thread, in twelve bits.
    #[must_use]
    pub const fn thread(self) -> u16 {
        self.field(52)
    }

    const fn field(self, shift: u32) -> u16 {
        let [low, high, ..] = (self.what >> shift).to_le_bytes();
        u16::from_le_bytes([low, high & 0xf])
    }

    /// What happened; `None` for a number that this version does not know.
    #[must_use]
    pub fn event(self) -> Option<Event> {
        let [number, ..] = self.what.to_le_bytes();
        Event::ALL.get(usize::from(number).wrapping_sub(1)).copied()
    }

    /// The record as two words of eight bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        let value = (self.what as u128) << 64 | self.time_ns as u128;
        value.to_le_bytes()
    }

    /// A record from its bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        let [a, b, c, d, e, f, g, h, rest @ ..] = bytes;
        Self {
            time_ns: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            what: u64::from_le_bytes(rest),
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
            let record = Record::new(7, 0xffff_fffe, event)
                .in_region(4094)
                .by_thread(0x7abc);
            let back = Record::from_bytes(record.to_bytes());
            assert_eq!((back.time_ns, back.page()), (7, 0xffff_fffe));
            assert_eq!((back.region(), back.thread()), (4094, 0xabc));
            assert_eq!(back.event(), Some(event));
        }
        assert_eq!(Record::from_bytes([0; 16]).event(), None);
    }

    #[test]
    fn a_header_survives_its_bytes() {
        let header = Header {
            magic: MAGIC,
            version: 3,
            page_bytes: 4096,
            budget_pages: 1 << 33,
            pid: 77,
            reserved: 0,
        };
        assert_eq!(Header::from_bytes(&header.to_bytes()), Some(header));
        assert_eq!(Header::from_bytes(&[0; 32]), None);
    }
}
