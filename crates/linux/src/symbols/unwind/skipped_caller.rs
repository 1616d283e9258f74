//! The caller that a walk by frame pointers skips.
//!
//! The walk finds the return address of the innermost frame. A function that makes no frame, as
//! memset, memcpy and the wrappers of system calls in all C libraries, leaves its caller's frame
//! innermost, so the walk goes on in the caller's caller. The call in front of that return address
//! leads to the function in between.

use super::Machine;

/// Where the call in front of a return address leads: to the start of a function in the same code.
/// `None` for calls through registers and tables, and for entries of the linkage table, which lead
/// elsewhere. `code` are the bytes mapped from `start` on.
pub(super) fn callee(machine: &Machine, code: &[u8], start: u64, returns_to: u64) -> Option<u64> {
    let at = usize::try_from(returns_to.checked_sub(start)?).ok()?;
    let (distance, is_linkage): (i64, fn(&[u8]) -> bool) = match machine {
        Machine::X86(..) => (x86_call(code.get(..at)?)?, is_x86_linkage),
        Machine::Arm(..) => (arm_call(code.get(..at)?)?, is_arm_linkage),
    };
    let target = returns_to.checked_add_signed(distance)?;
    let into = usize::try_from(target.checked_sub(start)?).ok()?;
    let begins = code.get(into..).filter(|code| !code.is_empty())?;
    (!is_linkage(begins)).then_some(target)
}

/// The distance of `call rel32` (Intel SDM 2A, CALL), from the next instruction on.
fn x86_call(before: &[u8]) -> Option<i64> {
    let [.., 0xe8, a, b, c, d] = before else {
        return None;
    };
    Some(i64::from(i32::from_le_bytes([*a, *b, *c, *d])))
}

/// `jmp *offset(%rip)`, after `endbr64` and with a bnd prefix too; or `push $index`, of entries that
/// are bound late (System V ABI, AMD64, 5.2).
fn is_x86_linkage(code: &[u8]) -> bool {
    let code = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(code);
    let code = code.strip_prefix(&[0xf2]).unwrap_or(code);
    code.starts_with(&[0xff, 0x25]) || code.starts_with(&[0x68])
}

/// The distance of `bl imm26` (Arm ARM, C6.2.33), from the next instruction on.
fn arm_call(before: &[u8]) -> Option<i64> {
    let word = u32::from_le_bytes(*before.last_chunk()?);
    // The sign is bit 25; instructions have four bytes.
    let words = (word << 6).cast_signed() >> 6;
    (word >> 26 == 0b10_0101).then_some(i64::from(words) * 4 - 4)
}

/// `adrp x16, …`, after `bti c` too (ELF for the Arm 64-bit architecture, procedure linkage table).
fn is_arm_linkage(code: &[u8]) -> bool {
    const BTI_C: [u8; 4] = 0xd503_245f_u32.to_le_bytes();
    let code = code.strip_prefix(&BTI_C).unwrap_or(code);
    let word = code.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    word.is_some_and(|word| word & 0x9f00_001f == 0x9000_0010)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x40_0000;

    fn machine(arm: bool) -> Machine {
        match arm {
            true => Machine::Arm(Default::default(), Box::default()),
            false => Machine::X86(Default::default(), Box::default()),
        }
    }

    /// 64 bytes: these at 0, and those at 32.
    fn code(at_0: &[u8], at_32: &[u8]) -> Vec<u8> {
        let mut code = vec![0x90; 64];
        code[..at_0.len()].copy_from_slice(at_0);
        code[32..32 + at_32.len()].copy_from_slice(at_32);
        code
    }

    fn found(arm: bool, code: &[u8], after: u64) -> Option<u64> {
        callee(&machine(arm), code, START, START + after)
    }

    #[test]
    fn a_direct_call_names_the_function() {
        let forward = code(&[0xe8, 27, 0, 0, 0], &[0x55]);
        assert_eq!(found(false, &forward, 5), Some(START + 32));
        let back = code(&[0x55], &[0xe8, 0xdb, 0xff, 0xff, 0xff]);
        assert_eq!(found(false, &back, 37), Some(START));
        // bl #32, and back from 32 to 0.
        let forward = code(&0x9400_0008_u32.to_le_bytes(), &[0xfd, 0x7b, 0xbf, 0xa9]);
        assert_eq!(found(true, &forward, 4), Some(START + 32));
        let back = code(&[0xfd, 0x7b, 0xbf, 0xa9], &0x97ff_fff8_u32.to_le_bytes());
        assert_eq!(found(true, &back, 36), Some(START));
    }

    #[test]
    fn calls_that_lead_elsewhere_name_nothing() {
        let through_register = code(&[0x90, 0x90, 0x90, 0xff, 0xd0], &[0x55]);
        assert_eq!(found(false, &through_register, 5), None);
        for linkage in [
            &[0xff, 0x25, 1, 0, 0, 0][..],
            &[0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25],
            &[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25],
            &[0xf3, 0x0f, 0x1e, 0xfa, 0x68, 0, 0, 0, 0],
        ] {
            let code = code(&[0xe8, 27, 0, 0, 0], linkage);
            assert_eq!(found(false, &code, 5), None, "{linkage:x?}");
        }
        let linkage = code(
            &0x9400_0008_u32.to_le_bytes(),
            &0x9000_0010_u32.to_le_bytes(),
        );
        assert_eq!(found(true, &linkage, 4), None);
        let outside = code(&[0xe8, 0, 1, 0, 0], &[]);
        assert_eq!(found(false, &outside, 5), None);
        assert_eq!(found(false, &outside, 2), None);
        assert_eq!(callee(&machine(false), &outside, START, START - 1), None);
    }
}
