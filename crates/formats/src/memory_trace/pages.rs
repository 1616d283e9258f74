//! Accesses by page: consecutive ones to the same 4 KiB as one short record.

/// Consecutive accesses to one page: the page's address, with the number of accesses after the
/// first in the bits that are zero in a page's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run(u64);

impl Run {
    /// Where its 4 KiB begin.
    #[inline(always)]
    #[must_use]
    pub fn page(self) -> u64 {
        self.0 >> PAGE << PAGE
    }

    /// Number of accesses, 1 to 16.
    #[inline(always)]
    #[must_use]
    pub fn accesses(self) -> u64 {
        1 + (self.0 & MORE)
    }
}

/// Bits of an offset within 4 KiB.
const PAGE: u32 = 12;
/// Slots for pages in a block, as bits.
const SLOT_BITS: u32 = 11;
const SLOTS: usize = 1 << SLOT_BITS;
/// Most accesses of a record after the first.
const MORE: u64 = 15;
/// Bits of a record below a new page's number, and below its slot.
const NUMBER: u32 = 16;
const SLOT: u32 = 5;

/// Appends the runs of a block's records to `runs`. Returns the number of accesses, or `None` if
/// the last record is cut off.
pub fn decode(bytes: &[u8], runs: &mut Vec<Run>) -> Option<u64> {
    let mut pages = [0_u64; SLOTS];
    let (mut rest, mut accesses) = (bytes, 0);
    runs.reserve(bytes.len() / 2);
    while let Some((head, after)) = rest.split_first_chunk() {
        let head = u16::from_le_bytes(*head);
        let page = &mut pages[usize::from(head >> SLOT)];
        if head & 1 == 0 {
            rest = after;
        } else {
            let (record, after) = rest.split_first_chunk()?;
            *page = (i64::from_le_bytes(*record) >> NUMBER << PAGE) as u64;
            rest = after;
        }
        let more = u64::from(head) >> 1 & MORE;
        accesses += 1 + more;
        runs.push(Run(*page | more));
    }
    rest.is_empty().then_some(accesses)
}

/// Builds the records of a block.
#[derive(Debug)]
pub struct Encoder {
    /// Page numbers in slots.
    pages: Box<[Option<u64>; SLOTS]>,
    page: u64,
    /// Accesses to it that are not in a record yet.
    accesses: u64,
    records: Vec<u8>,
}

impl Encoder {
    pub fn new() -> Self {
        Self {
            pages: Box::new([None; SLOTS]),
            page: 0,
            accesses: 0,
            records: Vec::new(),
        }
    }

    /// Whether records can store an address's page number.
    pub fn holds(address: u64) -> bool {
        let spare = u64::BITS - PAGE - (u64::BITS - NUMBER);
        (address << spare) as i64 >> spare == address as i64
    }

    pub fn access(&mut self, address: u64) {
        let page = address >> PAGE;
        if page != self.page {
            self.end_run();
            self.page = page;
        }
        self.accesses += 1;
    }

    /// Ends the block and returns its records.
    pub fn finish(&mut self) -> Vec<u8> {
        self.end_run();
        self.pages.fill(None);
        std::mem::take(&mut self.records)
    }

    fn end_run(&mut self) {
        let slot = ((self.page ^ (self.page >> SLOT_BITS)) % SLOTS as u64) as usize;
        while self.accesses > 0 {
            let now = self.accesses.min(MORE + 1);
            self.accesses -= now;
            let head = (slot as u64) << SLOT | (now - 1) << 1;
            if self.pages[slot] == Some(self.page) {
                self.records.extend((head as u16).to_le_bytes());
            } else {
                self.pages[slot] = Some(self.page);
                let record = self.page << NUMBER | head | 1;
                self.records.extend(record.to_le_bytes());
            }
        }
    }
}
