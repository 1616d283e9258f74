//! How to get from a function to its caller, by the unwind tables (`.eh_frame`) of its program or library.
//!
//! Only what compilers use at calls on x86-64: the caller's frame by the stack pointer, by the frame
//! pointer, or, where a function realigned its stack, by a word that the frame pointer leads to. Formats:
//! LSB 5.0, "Exception Frames"; DWARF 5, 6.4; System V ABI for AMD64, 3.6.

mod cursor;
mod program;
mod rule;

pub use rule::{Base, Rule};

use cursor::Cursor;
use program::Program;

/// The part of a program or library in memory that holds its unwind tables.
#[derive(Clone, Copy)]
pub struct Tables<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Address of the first one.
    pub address: u64,
    /// Address of `.eh_frame_hdr` in it.
    pub header: u64,
}

/// Relative to its own place, four bytes with a sign (`DW_EH_PE_pcrel`, `DW_EH_PE_sdata4`).
const RELATIVE: u8 = 0x1b;
/// Relative to the header, four bytes with a sign (`DW_EH_PE_datarel`, `DW_EH_PE_sdata4`).
const TO_HEADER: u8 = 0x3b;
/// Four bytes without a sign (`DW_EH_PE_udata4`).
const COUNT: u8 = 0x03;

impl<'a> Tables<'a> {
    /// The rule at the code address `pc`; `None` if the tables do not have it, or not in a form that
    /// is understood.
    #[must_use]
    pub fn rule(&self, pc: u64) -> Option<Rule> {
        let function = self.function(pc)?;
        let mut cursor = self.at(function)?;
        let entry = cursor.entry()?;
        let common_at = entry.start.checked_sub(u64::from(entry.kind))?;
        let common = Common::read(self.at(common_at)?)?;
        let mut body = entry.body;
        let start = body.pointer(common.pointers)?;
        let length = body.unsigned(common.pointers)?;
        if !(start..start.checked_add(length)?).contains(&pc) {
            return None;
        }
        if common.is_signal {
            return Some(Rule::END);
        }
        if common.has_augmentation {
            let length = body.leb()?;
            body.skip(length)?;
        }
        let mut program = Program::new(common.code_align, common.data_align, common.pointers);
        program.run(common.instructions, start, u64::MAX)?;
        program.keep_initial();
        program.run(body, start, pc)?;
        Some(program.rule())
    }

    fn at(&self, address: u64) -> Option<Cursor<'a>> {
        let offset = usize::try_from(address.checked_sub(self.address)?).ok()?;
        Some(Cursor {
            bytes: self.bytes.get(offset..)?,
            address,
        })
    }

    /// Address of the entry of the last function that starts at or before `pc`, by the sorted table of
    /// `.eh_frame_hdr`.
    fn function(&self, pc: u64) -> Option<u64> {
        let mut cursor = self.at(self.header)?;
        let kinds = cursor.array::<4>()?;
        let [1, RELATIVE, COUNT, TO_HEADER] = kinds else {
            return None;
        };
        cursor.u32()?;
        let count = cursor.u32()? as usize;
        let table = cursor.bytes.get(..count.checked_mul(8)?)?;
        let word = |at: usize| -> Option<u64> {
            let word = *table.get(at..)?.first_chunk::<4>()?;
            Some(
                self.header
                    .wrapping_add_signed(i32::from_le_bytes(word).into()),
            )
        };
        // The first function behind `pc` is in low..=high.
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            match word(middle * 8)? <= pc {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        word(low.checked_sub(1)? * 8 + 4)
    }
}

/// What the functions of a common entry share.
struct Common<'a> {
    code_align: u64,
    data_align: i64,
    has_augmentation: bool,
    is_signal: bool,
    /// Encoding of code addresses.
    pointers: u8,
    instructions: Cursor<'a>,
}

impl<'a> Common<'a> {
    fn read(mut cursor: Cursor<'a>) -> Option<Self> {
        let mut body = cursor.entry()?.body;
        let version = body.byte()?;
        let end = body.bytes.iter().position(|&byte| byte == 0)?;
        let augmentation = body.bytes.get(..end)?;
        body.skip(end as u64 + 1)?;
        let code_align = body.leb()?;
        let data_align = body.signed_leb()?;
        match version {
            1 => drop(body.byte()?),
            3 => drop(body.leb()?),
            _ => return None,
        }
        let mut common = Self {
            code_align,
            data_align,
            has_augmentation: augmentation.first() == Some(&b'z'),
            is_signal: false,
            pointers: 0,
            instructions: body,
        };
        match augmentation {
            [] => return Some(common),
            [b'z', letters @ ..] => common.augment(letters)?,
            _ => return None,
        }
        Some(common)
    }

    fn augment(&mut self, letters: &[u8]) -> Option<()> {
        let length = self.instructions.leb()?;
        let mut data = self.instructions;
        self.instructions.skip(length)?;
        for letter in letters {
            match letter {
                b'R' => self.pointers = data.byte()?,
                b'P' => {
                    let encoding = data.byte()?;
                    data.unsigned(encoding)?;
                }
                b'L' => drop(data.byte()?),
                b'S' => self.is_signal = true,
                _ => return None,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
