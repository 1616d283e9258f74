//! Unwind tables of AArch64 code that signs its return addresses (pointer authentication,
//! `-mbranch-protection`; all of Debian's since 13).
//!
//! Such code marks where the address is signed by `DW_CFA_AARCH64_negate_ra_state`, which has no
//! operands and which the unwinder refuses together with the whole function. Whether an address is
//! signed does not matter here, since the signature's bits are cut off from every return address: so
//! the marks are replaced by instructions that do nothing.
//!
//! Formats: DWARF 5, 6.4; "DWARF for the Arm 64-bit Architecture"; LSB 5.0, "Exception Frames".

use std::collections::BTreeMap;

const NOP: u8 = 0;
const NEGATE_RA_STATE: u8 = 0x2d;

/// Replaces the marks in a section `.eh_frame`. Entries that make no sense stay as they are.
pub(super) fn without_marks(mut eh_frame: Vec<u8>) -> Vec<u8> {
    for at in marks(&eh_frame) {
        eh_frame[at] = NOP;
    }
    eh_frame
}

/// Offsets of all marks.
fn marks(section: &[u8]) -> Vec<usize> {
    let mut commons: BTreeMap<usize, Common> = BTreeMap::new();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(entry) = Entry::read(section, at) {
        at = entry.end;
        let common = match entry.common_at {
            None => {
                let Some((common, rest)) = Common::read(entry.bytes(section)) else {
                    continue;
                };
                commons.insert(entry.start, common);
                found.extend(in_instructions(
                    section,
                    entry.end - rest..entry.end,
                    common,
                ));
                continue;
            }
            Some(common_at) => commons.get(&common_at).copied(),
        };
        let Some(common) = common else { continue };
        let mut cursor = Cursor(entry.bytes(section));
        if cursor.function_head(common).is_some() {
            let from = entry.end - cursor.0.len();
            found.extend(in_instructions(section, from..entry.end, common));
        }
    }
    found
}

/// The part of an entry behind its length and its kind.
struct Entry {
    start: usize,
    body: usize,
    end: usize,
    /// Where the common entry of a function's is; `None` for a common entry.
    common_at: Option<usize>,
}

impl Entry {
    fn read(section: &[u8], start: usize) -> Option<Self> {
        let mut cursor = Cursor(section.get(start..)?);
        let length = match cursor.u32()? {
            0 => return None,
            u32::MAX => cursor.u64()?,
            length => length.into(),
        };
        let kind_at = section.len() - cursor.0.len();
        let end = kind_at.checked_add(usize::try_from(length).ok()?)?;
        if end > section.len() {
            return None;
        }
        let common_at = match cursor.u32()? {
            0 => None,
            back => Some(kind_at.checked_sub(usize::try_from(back).ok()?)?),
        };
        let body = kind_at + 4;
        (body <= end).then_some(Self {
            start,
            body,
            end,
            common_at,
        })
    }

    fn bytes<'a>(&self, section: &'a [u8]) -> &'a [u8] {
        &section[self.body..self.end]
    }
}

/// What a common entry says about those of functions.
#[derive(Clone, Copy)]
struct Common {
    has_augmentation: bool,
    /// Encoding of code addresses.
    pointers: u8,
}

impl Common {
    /// Also the number of bytes of its instructions, which come last.
    fn read(body: &[u8]) -> Option<(Self, usize)> {
        let mut cursor = Cursor(body);
        let version = cursor.byte()?;
        let end = cursor.0.iter().position(|&byte| byte == 0)?;
        let (augmentation, rest) = cursor.0.split_at(end);
        cursor.0 = &rest[1..];
        cursor.leb()?;
        cursor.leb()?;
        match version {
            1 => drop(cursor.byte()?),
            _ => cursor.leb().map(drop)?,
        }
        let mut common = Self {
            has_augmentation: augmentation.first() == Some(&b'z'),
            pointers: 0,
        };
        if common.has_augmentation {
            let length = usize::try_from(cursor.leb()?).ok()?;
            let mut data = Cursor(cursor.0.get(..length)?);
            cursor.0 = &cursor.0[length..];
            for letter in &augmentation[1..] {
                match letter {
                    b'R' => common.pointers = data.byte()?,
                    b'P' => {
                        let encoding = data.byte()?;
                        data.pointer(encoding)?;
                    }
                    b'L' => drop(data.byte()?),
                    // Of signals, and of code signed with the other key: without data.
                    b'S' | b'B' => {}
                    _ => return None,
                }
            }
        }
        Some((common, cursor.0.len()))
    }
}

/// Offsets of marks among these instructions, up to the first that is not known.
fn in_instructions(section: &[u8], range: std::ops::Range<usize>, common: Common) -> Vec<usize> {
    let end = range.end;
    let mut cursor = Cursor(&section[range]);
    let mut found = Vec::new();
    loop {
        let at = end - cursor.0.len();
        let Some(code) = cursor.byte() else { break };
        if code == NEGATE_RA_STATE {
            found.push(at);
        }
        if cursor.operands(code, common).is_none() {
            break;
        }
    }
    found
}

/// What is left to read.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn u32(&mut self) -> Option<u32> {
        let bytes = *self.0.first_chunk()?;
        self.skip(4)?;
        Some(u32::from_le_bytes(bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        let bytes = *self.0.first_chunk()?;
        self.skip(8)?;
        Some(u64::from_le_bytes(bytes))
    }

    /// An unsigned LEB128 number; of a signed one only its length is right.
    fn leb(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A pointer in this encoding (`DW_EH_PE_*`).
    fn pointer(&mut self, encoding: u8) -> Option<()> {
        match encoding & 0xf {
            0x0 | 0x4 | 0xc => self.skip(8),
            0x1 | 0x9 => self.leb().map(drop),
            0x2 | 0xa => self.skip(2),
            0x3 | 0xb => self.skip(4),
            _ => None,
        }
    }

    /// A function's start, length and augmentation.
    fn function_head(&mut self, common: Common) -> Option<()> {
        self.pointer(common.pointers)?;
        self.pointer(common.pointers)?;
        if common.has_augmentation {
            let length = self.leb()?;
            self.skip(usize::try_from(length).ok()?)?;
        }
        Some(())
    }

    fn block(&mut self) -> Option<()> {
        let length = self.leb()?;
        self.skip(usize::try_from(length).ok()?)
    }

    /// The operands of an instruction (DWARF 5, table 7.29, and GNU's).
    fn operands(&mut self, code: u8, common: Common) -> Option<()> {
        match code {
            // advance_loc, restore
            0x40..=0x7f | 0xc0..=0xff => Some(()),
            // offset
            0x80..=0xbf => self.leb().map(drop),
            // nop, remember_state, restore_state, the mark
            0x00 | 0x0a | 0x0b | NEGATE_RA_STATE => Some(()),
            // set_loc
            0x01 => self.pointer(common.pointers),
            // advance_loc1, 2, 4
            0x02 => self.skip(1),
            0x03 => self.skip(2),
            0x04 => self.skip(4),
            // offset_extended, register, def_cfa, their signed kinds, val_offset
            0x05 | 0x09 | 0x0c | 0x11 | 0x12 | 0x14 | 0x15 | 0x2f => {
                self.leb()?;
                self.leb().map(drop)
            }
            // restore_extended, undefined, same_value, def_cfa_register, def_cfa_offset, GNU_args_size
            0x06..=0x08 | 0x0d | 0x0e | 0x13 | 0x2e => self.leb().map(drop),
            // def_cfa_expression
            0x0f => self.block(),
            // expression, val_expression
            0x10 | 0x16 => {
                self.leb()?;
                self.block()
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry: its length, then `kind` and `body`, filled up to eight bytes.
    fn entry(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut content = [&kind.to_le_bytes()[..], body].concat();
        while !content.len().is_multiple_of(4) {
            content.push(NOP);
        }
        let length = u32::try_from(content.len()).expect("short");
        [&length.to_le_bytes()[..], &content].concat()
    }

    /// As GNU's assembler writes them for `-mbranch-protection=standard`: the same numbers occur as
    /// operands, where they must stay.
    #[test]
    fn marks_are_replaced_and_operands_are_not() {
        let common = entry(0, b"\x01zR\0\x04\x78\x1e\x01\x1b\x0c\x1f\0\x2d");
        let mark = common.iter().rposition(|&byte| byte == 0x2d).expect("one");
        let head = b"\x2d\0\0\0\x2d\0\0\0\0";
        // advance_loc 1, mark, advance_loc1 0x2d, def_cfa_offset 0x2d, offset x29 0x2d, expression of
        // two bytes, mark.
        let code = b"\x41\x2d\x02\x2d\x0e\x2d\x9d\x2d\x10\x1d\x02\x2d\x2d\x2d";
        let kind = u32::try_from(common.len() + 4).expect("short");
        let function = entry(kind, &[&head[..], code].concat());
        let first = common.len() + 8 + head.len() + 1;
        let section = [&common[..], &function, &[0; 4]].concat();
        assert_eq!(marks(&section), [mark, first, first + 12]);
        let plain = without_marks(section.clone());
        assert_eq!(marks(&plain), [0_usize; 0]);
        let changed = plain.iter().zip(&section).filter(|(a, b)| a != b).count();
        assert_eq!(changed, 3);
    }

    #[test]
    fn what_is_no_table_stays_as_it_is() {
        let mut state = 1_u64;
        for length in 0..300 {
            let bytes: Vec<u8> = (0..length)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    // Often an entry's short length.
                    if state >> 63 == 0 {
                        0
                    } else {
                        state.to_be_bytes()[1]
                    }
                })
                .collect();
            assert_eq!(without_marks(bytes.clone()).len(), bytes.len());
        }
        assert_eq!(without_marks(vec![0xff; 40]), [0xff; 40]);
    }
}
