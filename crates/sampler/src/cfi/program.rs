//! Runs the instructions of an entry up to a code address.

use super::cursor::Cursor;
use super::rule::{Base, Rule};

/// Numbers of registers (System V ABI for AMD64, figure 3.36).
const RBP: u64 = 6;
const RSP: u64 = 7;
const RETURN: u64 = 16;

/// States that functions remember while they leave early: more than two were not seen.
const REMEMBERED: usize = 8;

/// Where the canonical frame address is.
#[derive(Clone, Copy, PartialEq)]
enum Frame {
    By {
        register: u64,
        offset: i64,
    },
    /// The word at the frame pointer and this offset.
    Word(i64),
    Unknown,
}

/// Where a register of the caller is.
#[derive(Clone, Copy, PartialEq)]
enum Saved {
    Unchanged,
    /// At this offset from the canonical frame address.
    At(i64),
    /// At the frame pointer.
    AtFrame,
    Undefined,
    Unknown,
}

#[derive(Clone, Copy)]
struct State {
    frame: Frame,
    rbp: Saved,
    returns: Saved,
}

/// The state while instructions run.
pub(super) struct Program {
    code_align: u64,
    data_align: i64,
    pointers: u8,
    state: State,
    initial: State,
    remembered: [State; REMEMBERED],
    depth: usize,
}

impl Program {
    pub fn new(code_align: u64, data_align: i64, pointers: u8) -> Self {
        let state = State {
            frame: Frame::Unknown,
            rbp: Saved::Unchanged,
            returns: Saved::Unknown,
        };
        Self {
            code_align,
            data_align,
            pointers,
            state,
            initial: state,
            remembered: [state; REMEMBERED],
            depth: 0,
        }
    }

    /// Takes the state after the common entry's instructions as that to which others restore.
    pub fn keep_initial(&mut self) {
        self.initial = self.state;
    }

    /// The rule that results.
    pub fn rule(&self) -> Rule {
        let State {
            frame,
            rbp,
            returns,
        } = self.state;
        if returns == Saved::Undefined {
            return Rule::END;
        }
        self.known(frame, rbp, returns).unwrap_or(Rule::END)
    }

    fn known(&self, frame: Frame, rbp: Saved, returns: Saved) -> Option<Rule> {
        let (base, offset) = match frame {
            Frame::By {
                register: RSP,
                offset,
            } => (Base::Stack, offset),
            Frame::By {
                register: RBP,
                offset,
            } => (Base::Frame, offset),
            Frame::Word(offset) => (Base::AtFrame, offset),
            Frame::By { .. } | Frame::Unknown => return None,
        };
        let frame = match rbp {
            Saved::AtFrame if base == Base::AtFrame => None,
            Saved::Unchanged if base != Base::AtFrame => None,
            Saved::At(offset) if base != Base::AtFrame => Some(i32::try_from(offset).ok()?),
            _ => return None,
        };
        (returns == Saved::At(-8)).then_some(Rule {
            base,
            offset: i32::try_from(offset).ok()?,
            frame,
        })
    }

    /// Runs instructions of code from `location` on, up to those behind `pc`; `None` at one that is not
    /// known.
    pub fn run(&mut self, mut code: Cursor<'_>, mut location: u64, pc: u64) -> Option<()> {
        while !code.bytes.is_empty() {
            let byte = code.byte()?;
            let low = u64::from(byte & 0x3f);
            match byte {
                0x40..=0x7f => location = self.advanced(location, low)?,
                0x80..=0xbf => {
                    let offset = code.leb()?.cast_signed();
                    self.save(low, Saved::At(offset.checked_mul(self.data_align)?));
                }
                0xc0..=0xff => self.restore(low),
                0x01 => location = code.pointer(self.pointers)?,
                0x02 => location = self.advanced(location, code.byte()?.into())?,
                0x03 => location = self.advanced(location, code.unsigned(0x2)?)?,
                0x04 => location = self.advanced(location, code.unsigned(0x3)?)?,
                _ => self.other(byte, &mut code)?,
            }
            if location > pc {
                break;
            }
        }
        Some(())
    }

    fn advanced(&self, location: u64, by: u64) -> Option<u64> {
        location.checked_add(by.checked_mul(self.code_align)?)
    }

    /// Instructions (DWARF 5, table 7.29, and GNU's) that do not change the location.
    fn other(&mut self, byte: u8, code: &mut Cursor<'_>) -> Option<()> {
        match byte {
            // nop
            0x00 => {}
            // offset_extended, and with a sign
            0x05 => {
                let register = code.leb()?;
                let offset = code.leb()?.cast_signed();
                self.save(register, Saved::At(offset.checked_mul(self.data_align)?));
            }
            0x11 => {
                let register = code.leb()?;
                let offset = code.signed_leb()?;
                self.save(register, Saved::At(offset.checked_mul(self.data_align)?));
            }
            // restore_extended
            0x06 => {
                let register = code.leb()?;
                self.restore(register);
            }
            // undefined, same_value
            0x07 => {
                let register = code.leb()?;
                self.save(register, Saved::Undefined);
            }
            0x08 => {
                let register = code.leb()?;
                self.save(register, Saved::Unchanged);
            }
            // register, val_offset, its signed kind
            0x09 | 0x14 | 0x15 => {
                let register = code.leb()?;
                code.leb()?;
                self.save(register, Saved::Unknown);
            }
            // remember_state, restore_state
            0x0a => {
                *self.remembered.get_mut(self.depth)? = self.state;
                self.depth += 1;
            }
            0x0b => {
                self.depth = self.depth.checked_sub(1)?;
                self.state = *self.remembered.get(self.depth)?;
            }
            // expression, val_expression
            0x10 | 0x16 => {
                let register = code.leb()?;
                let is_at_frame = part(code)?.bytes == [BREG_RBP, 0] && byte == 0x10;
                self.save(
                    register,
                    match is_at_frame {
                        true => Saved::AtFrame,
                        false => Saved::Unknown,
                    },
                );
            }
            // GNU_args_size
            0x2e => drop(code.leb()?),
            _ => self.define_frame(byte, code)?,
        }
        Some(())
    }

    /// Instructions that define the canonical frame address.
    fn define_frame(&mut self, byte: u8, code: &mut Cursor<'_>) -> Option<()> {
        let (register, offset) = match self.state.frame {
            Frame::By { register, offset } => (register, offset),
            Frame::Word(_) | Frame::Unknown => (u64::MAX, 0),
        };
        self.state.frame = match byte {
            // def_cfa, def_cfa_register, def_cfa_offset, and those with a sign
            0x0c => Frame::By {
                register: code.leb()?,
                offset: code.leb()?.cast_signed(),
            },
            0x0d => Frame::By {
                register: code.leb()?,
                offset,
            },
            0x0e => Frame::By {
                register,
                offset: code.leb()?.cast_signed(),
            },
            0x12 => Frame::By {
                register: code.leb()?,
                offset: code.signed_leb()?.checked_mul(self.data_align)?,
            },
            0x13 => Frame::By {
                register,
                offset: code.signed_leb()?.checked_mul(self.data_align)?,
            },
            // def_cfa_expression
            0x0f => {
                let expression = part(code)?;
                word_at_frame(expression).map_or(Frame::Unknown, Frame::Word)
            }
            _ => return None,
        };
        Some(())
    }

    fn save(&mut self, register: u64, saved: Saved) {
        match register {
            RBP => self.state.rbp = saved,
            RETURN => self.state.returns = saved,
            _ => {}
        }
    }

    fn restore(&mut self, register: u64) {
        match register {
            RBP => self.state.rbp = self.initial.rbp,
            RETURN => self.state.returns = self.initial.returns,
            _ => {}
        }
    }
}

/// `DW_OP_breg6`: the frame pointer and an offset.
const BREG_RBP: u8 = 0x76;

/// Takes an expression with its length before it.
fn part<'a>(code: &mut Cursor<'a>) -> Option<Cursor<'a>> {
    let length = code.leb()?;
    let mut part = *code;
    code.skip(length)?;
    part.bytes = part.bytes.get(..usize::try_from(length).ok()?)?;
    Some(part)
}

/// The offset of an expression that reads the word at the frame pointer and an offset
/// (`DW_OP_deref`): where a function that realigned its stack keeps the old stack pointer.
fn word_at_frame(mut expression: Cursor<'_>) -> Option<i64> {
    if expression.byte()? != BREG_RBP {
        return None;
    }
    let offset = expression.signed_leb()?;
    (expression.bytes == [0x06]).then_some(offset)
}
