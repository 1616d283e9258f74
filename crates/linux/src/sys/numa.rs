//! Policies of NUMA nodes (set_mempolicy(2)) and CPUs to run on (sched_setaffinity(2)): both are
//! inherited by fork and kept by execve.

use std::ptr;

/// Where a child runs and allocates memory. Masks are bits of 64, lowest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// CPUs on which it may run; empty for no change.
    pub cpus: Vec<u64>,
    /// Policy of its memory, and its nodes; `None` for no change.
    pub memory: Option<(Policy, Vec<u64>)>,
}

/// Policy of memory (include/uapi/linux/mempolicy.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// `MPOL_BIND`: on these nodes only.
    Bind,
    /// `MPOL_INTERLEAVE`: page by page over these nodes.
    Interleave,
    /// `MPOL_LOCAL`: on the node of the CPU that touches it first, and left there.
    Local,
}

impl Policy {
    fn number(self) -> libc::c_int {
        match self {
            Self::Bind => 2,
            Self::Interleave => 3,
            Self::Local => 4,
        }
    }
}

/// Applies `nodes` to the calling thread. Returns whether the kernel accepted all of it; `errno`
/// says why not. Async-signal-safe: two system calls.
#[must_use]
pub(super) fn apply(nodes: &Nodes) -> bool {
    let cpus = &nodes.cpus;
    // SAFETY: the kernel reads as many bytes as the slice has; 0 names the calling thread.
    let runs = cpus.is_empty()
        || unsafe {
            let size = size_of_val(cpus.as_slice());
            libc::syscall(libc::SYS_sched_setaffinity, 0, size, cpus.as_ptr()) >= 0
        };
    let Some((policy, mask)) = nodes.memory.as_ref().filter(|_| runs) else {
        return runs;
    };
    // The kernel takes one bit less than it is told (get_nodes in mm/mempolicy.c).
    let (pointer, bits) = match mask.as_slice() {
        [] => (ptr::null(), 0),
        mask => (mask.as_ptr(), mask.len() * 64 + 1),
    };
    // SAFETY: the kernel reads the bits of a live slice, or nothing.
    unsafe { libc::syscall(libc::SYS_set_mempolicy, policy.number(), pointer, bits) == 0 }
}

/// Whether this process may set policies: seccomp profiles of containers forbid these calls together
/// (moby's default.json), and kernels without nodes have none of them.
#[must_use]
pub fn policy_can_be_set() -> bool {
    let none = ptr::null::<libc::c_void>();
    // SAFETY: with null pointers and no flags the kernel writes nothing.
    unsafe { libc::syscall(libc::SYS_get_mempolicy, none, none, 0_usize, none, 0_usize) == 0 }
}
