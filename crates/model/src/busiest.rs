//! Processes that are faulting now, for a user who does not know which one to look at.

/// What a process did during a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Busy {
    /// Its number.
    pub pid: i32,
    /// Minor faults.
    pub minor: u64,
    /// Major faults.
    pub major: u64,
    /// CPU time in the kernel, as a share of one CPU.
    pub system: f64,
    /// CPU time in user mode, as a share of one CPU.
    pub user: f64,
    /// Its command line, or the kernel's name for it in brackets.
    pub command: String,
}
