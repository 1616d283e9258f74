//! Return points of signal handlers: a few instructions of the C library, or of a runtime, that ask
//! the kernel to resume where the signal interrupted (sigreturn(2)).
//!
//! No call leads there. The address on the handler's stack is the start of the trampoline, not the
//! address after a call, and the frame below it was interrupted and did not call. As in debuggers,
//! trampolines are recognised by their code, because most programs have no symbols for them.

/// The code of each kind, with its assembly.
const TRAMPOLINES: [&[u8]; 3] = [
    // x86-64: mov $15, %rax; syscall. glibc, musl, Go.
    b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05",
    // x86-64: mov $15, %eax; syscall.
    b"\xb8\x0f\0\0\0\x0f\x05",
    // AArch64: mov x8, #139; svc #0.
    b"\x68\x11\x80\xd2\x01\0\0\xd4",
];

/// Whether a trampoline starts at this offset of a file.
pub(super) fn begins_at(file: &[u8], offset: u64) -> bool {
    let code = usize::try_from(offset).ok().and_then(|at| file.get(at..));
    code.is_some_and(|code| TRAMPOLINES.iter().any(|known| code.starts_with(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trampoline_is_known_by_its_code_and_only_at_its_begin() {
        let file = [&[0x90; 5][..], TRAMPOLINES[0], &[0; 3]].concat();
        let found: Vec<u64> = (0..20).filter(|&at| begins_at(&file, at)).collect();
        assert_eq!(found, [5]);
        assert!(!begins_at(&file, u64::MAX));
    }
}
