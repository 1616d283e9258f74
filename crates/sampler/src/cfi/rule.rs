//! The rule of one code address: where the caller's frame is.

/// What leads to the canonical frame address: that of the caller's stack before its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The stack pointer.
    Stack,
    /// The frame pointer.
    Frame,
    /// The word at the frame pointer and the offset (a function that realigned its stack).
    AtFrame,
    /// There is no caller.
    End,
}

/// A rule. The return address is the word below the canonical frame address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What leads to the canonical frame address.
    pub base: Base,
    /// Offset from there.
    pub offset: i32,
    /// Where the caller's frame pointer is, from the canonical frame address; `None` if it is unchanged, or
    /// with [`Base::AtFrame`], where the frame pointer leads to.
    pub frame: Option<i32>,
}

/// Bits of the offset in a packed rule.
const OFFSET_BITS: u32 = 29;

impl Rule {
    /// The outermost function.
    pub const END: Self = Self {
        base: Base::End,
        offset: 0,
        frame: None,
    };

    /// In one word, never 0; `None` if an offset is too large for it.
    #[must_use]
    pub fn packed(self) -> Option<u64> {
        let base = match self.base {
            Base::Stack => 0,
            Base::Frame => 1,
            Base::AtFrame => 2,
            Base::End => 3,
        };
        let limit = 1 << (OFFSET_BITS - 1);
        // An offset of 0 stands for none: that is where the return address is not, nor anything saved.
        let frame = self.frame.unwrap_or(0);
        if !(-limit..limit).contains(&self.offset) || self.frame == Some(0) {
            return None;
        }
        let offset = u64::from(self.offset.cast_unsigned()) & ((1 << OFFSET_BITS) - 1);
        Some(1 | base << 1 | offset << 3 | u64::from(frame.cast_unsigned()) << 32)
    }

    /// The rule of a word from [`Self::packed`].
    #[must_use]
    pub fn unpacked(word: u64) -> Self {
        let base = match word >> 1 & 3 {
            0 => Base::Stack,
            1 => Base::Frame,
            2 => Base::AtFrame,
            _ => Base::End,
        };
        let above = 32 - OFFSET_BITS;
        let offset = (word as u32).cast_signed() >> 3 << above >> above;
        let frame = ((word >> 32) as u32).cast_signed();
        Self {
            base,
            offset,
            frame: (frame != 0).then_some(frame),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_rules_come_back() {
        for base in [Base::Stack, Base::Frame, Base::AtFrame, Base::End] {
            for offset in [0, 8, -8, 4096, (1 << 28) - 1, -(1 << 28)] {
                for frame in [None, Some(-16), Some(-48), Some(i32::MIN)] {
                    let rule = Rule {
                        base,
                        offset,
                        frame,
                    };
                    let packed = rule.packed().expect("it fits");
                    assert_eq!(Rule::unpacked(packed), rule);
                    assert_ne!(packed, 0);
                }
            }
        }
        let large = Rule {
            offset: 1 << 28,
            ..Rule::END
        };
        assert_eq!(large.packed(), None);
    }
}
