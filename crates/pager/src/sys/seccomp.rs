//! A filter of system calls that also covers calls that bypass libc: liburing and libaio make
//! theirs with their own instructions.
//!
//! While it is in force, a program's asynchronous I/O calls answer ENOSYS, as on a kernel built
//! without them: programs handle that case and continue with ordinary calls.

use super::call6;
use core::mem::offset_of;

/// Third argument of the pager's own `io_uring_setup`, which the kernel ignores.
pub const OWN: usize = 0x7061_6765;

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const ANSWER: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const FAIL: u32 = 0x0005_0000;
const X86_64: u32 = 0xc000_003e;
const SET_FILTER: usize = 1;
/// All threads of the process, at once.
const ALL_THREADS: usize = 1;

/// `struct sock_filter`.
#[repr(C)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

/// `struct sock_fprog`.
#[repr(C)]
struct Program {
    length: u16,
    instructions: *const Instruction,
}

/// `struct seccomp_data`.
#[repr(C)]
struct Call {
    number: i32,
    architecture: u32,
    instruction: u64,
    arguments: [u64; 6],
}

const fn step(code: u16, value: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction {
        code,
        if_true,
        if_false,
        value,
    }
}

const fn load(offset: usize) -> Instruction {
    step(LOAD, offset as u32, 0, 0)
}

/// Makes `io_uring_setup` and `io_setup` of the program fail with ENOSYS from now on, in all
/// threads and in every program that it becomes. Returns whether the kernel agreed. Without
/// privileges it requires that the process gains no new ones (set-user-ID programs then run as
/// their caller).
pub fn refuse_asynchronous() -> bool {
    const THIRD: usize = offset_of!(Call, arguments) + 16;
    let program = [
        load(offset_of!(Call, architecture)),
        step(JUMP_IF_EQUAL, X86_64, 0, 5),
        load(offset_of!(Call, number)),
        step(JUMP_IF_EQUAL, libc::SYS_io_setup as u32, 4, 0),
        step(JUMP_IF_EQUAL, libc::SYS_io_uring_setup as u32, 0, 2),
        load(THIRD),
        step(JUMP_IF_EQUAL, OWN as u32, 0, 1),
        step(ANSWER, ALLOW, 0, 0),
        step(ANSWER, FAIL | libc::ENOSYS as u32, 0, 0),
    ];
    let program = Program {
        length: program.len() as u16,
        instructions: program.as_ptr(),
    };
    let install = || {
        let argument = core::ptr::from_ref(&program) as usize;
        // SAFETY: the program lives through the call, which copies it.
        unsafe {
            call6(
                libc::SYS_seccomp,
                SET_FILTER,
                ALL_THREADS,
                argument,
                0,
                0,
                0,
            ) == 0
        }
    };
    install() || {
        // SAFETY: plain arguments.
        unsafe {
            call6(
                libc::SYS_prctl,
                libc::PR_SET_NO_NEW_PRIVS as usize,
                1,
                0,
                0,
                0,
                0,
            )
        };
        install()
    }
}
