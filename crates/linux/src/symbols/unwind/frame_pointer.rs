//! One step by the frame pointer.

use framehop::aarch64::UnwindRegsAarch64;
use framehop::x86_64::UnwindRegsX86_64;

/// Registers of a frame.
pub(super) trait FramePointer: Clone {
    /// The return address and the caller's registers, if the frame pointer lies above the stack
    /// pointer and what it points to was copied.
    fn caller(&self, read: &mut impl FnMut(u64) -> Result<u64, ()>) -> Option<(u64, Self)>;
}

/// Bytes of a frame's record: the caller's frame pointer, then the return address.
const RECORD: u64 = 16;

impl FramePointer for UnwindRegsX86_64 {
    fn caller(&self, read: &mut impl FnMut(u64) -> Result<u64, ()>) -> Option<(u64, Self)> {
        let (frame, after, address) = record(self.bp(), self.sp(), read)?;
        Some((address, Self::new(address, after, frame)))
    }
}

impl FramePointer for UnwindRegsAarch64 {
    fn caller(&self, read: &mut impl FnMut(u64) -> Result<u64, ()>) -> Option<(u64, Self)> {
        let (frame, after, signed) = record(self.fp(), self.sp(), read)?;
        let mask = self.lr_mask();
        let address = mask.strip_ptr_auth(signed);
        let registers = Self::new_with_ptr_auth_mask(mask, address, after, frame);
        Some((address, registers))
    }
}

/// The caller's frame pointer, the address behind the record, and the return address.
fn record(
    at: u64,
    stack: u64,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<(u64, u64, u64)> {
    if at < stack {
        return None;
    }
    let after = at.checked_add(RECORD)?;
    Some((read(at).ok()?, after, read(at + 8).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_reads_the_record_and_goes_up() {
        let mut read = |at: u64| match at {
            0x7100 => Ok(0x7200),
            0x7108 => Ok(0x4005),
            _ => Err(()),
        };
        let registers = UnwindRegsX86_64::new(0x4000, 0x70f0, 0x7100);
        let (address, caller) = registers.caller(&mut read).expect("its record is there");
        assert_eq!(
            (address, caller.sp(), caller.bp()),
            (0x4005, 0x7110, 0x7200)
        );
        assert!(caller.caller(&mut read).is_none(), "not copied");
        let data = UnwindRegsX86_64::new(0x4000, 0x70f0, 0x10);
        assert!(data.caller(&mut read).is_none(), "below the stack pointer");
    }
}
