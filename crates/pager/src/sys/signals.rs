//! Signal masks and actions, as the kernel defines them.

use super::call6;

/// A set of signals.
pub type Set = u64;

/// The bit of signal `number`.
#[must_use]
pub const fn bit(number: i32) -> Set {
    1 << (number - 1)
}

/// Whether this build reports a program's end by SIGSEGV (`handler::crash`).
pub const REPORTS_CRASHES: bool = cfg!(any(debug_assertions, feature = "inject"));

/// The signals that are blocked while the pager works: all, but for one that is reported. The kernel ends a
/// program without a word by a fault whose signal is blocked.
pub const ALL: Set = match REPORTS_CRASHES {
    true => !bit(libc::SIGSEGV),
    false => Set::MAX,
};

/// Sets this thread's mask and returns the former one.
pub fn set_mask(how: i32, set: Set) -> Set {
    let mut former: Set = 0;
    // SAFETY: both sets live through the call and have the size that is passed.
    unsafe {
        call6(
            libc::SYS_rt_sigprocmask,
            how as usize,
            &raw const set as usize,
            &raw mut former as usize,
            size_of::<Set>(),
            0,
            0,
        );
    }
    former
}

/// All signals are blocked in this thread while this lives.
#[derive(Debug)]
pub struct Blocked(Set);

impl Blocked {
    /// Blocks signals from here on.
    #[must_use]
    pub fn new() -> Self {
        Self(set_mask(libc::SIG_SETMASK, ALL))
    }
}

impl Default for Blocked {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        set_mask(libc::SIG_SETMASK, self.0);
    }
}

/// `struct sigaction` of the kernel (x86-64).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KernelAction {
    /// Handler, `SIG_DFL` or `SIG_IGN`.
    pub handler: usize,
    /// `SA_*`.
    pub flags: u64,
    /// Where handlers return to.
    pub restorer: usize,
    /// Signals blocked while the handler runs.
    pub mask: Set,
}

/// The flag for a given restorer.
pub const SA_RESTORER: u64 = 0x0400_0000;

core::arch::global_asm!(
    ".globl pagewise_signal_return",
    ".hidden pagewise_signal_return",
    ".type pagewise_signal_return, @function",
    "pagewise_signal_return:",
    "mov eax, 15",
    "jmp qword ptr [rip + {entry}]",
    ".size pagewise_signal_return, . - pagewise_signal_return",
    entry = sym super::entry::ENTRY,
);

unsafe extern "C" {
    fn pagewise_signal_return();
}

/// Address that handlers return to.
#[must_use]
pub fn restorer() -> usize {
    pagewise_signal_return as *const () as usize
}

/// Sets the kernel's action for signal `number`, and returns the former one.
///
/// # Safety
/// The handler must be a function that may run at any moment.
pub unsafe fn set_action(number: i32, action: Option<&KernelAction>) -> Option<KernelAction> {
    let mut former = KernelAction {
        handler: 0,
        flags: 0,
        restorer: 0,
        mask: 0,
    };
    let action = action.map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: both structures live through the call; the caller guarantees the handler.
    let answer = unsafe {
        call6(
            libc::SYS_rt_sigaction,
            number as usize,
            action as usize,
            &raw mut former as usize,
            size_of::<Set>(),
            0,
            0,
        )
    };
    (answer == 0).then_some(former)
}

/// Ends the process by signal `number`, whatever its handler or mask.
pub fn die_by(number: i32) -> ! {
    let default = KernelAction {
        handler: 0,
        flags: SA_RESTORER,
        restorer: restorer(),
        mask: 0,
    };
    // SAFETY: the default action is set and then taken; the calls have plain arguments.
    unsafe {
        set_action(number, Some(&default));
        set_mask(libc::SIG_SETMASK, !bit(number));
        let process = super::process_id() as usize;
        let thread = super::thread_id() as usize;
        super::call3(libc::SYS_tgkill, process, thread, number as usize);
        super::call3(libc::SYS_exit_group, 128 + number as usize, 0, 0);
    }
    loop {
        core::hint::spin_loop();
    }
}
