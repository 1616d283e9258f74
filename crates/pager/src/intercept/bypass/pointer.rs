//! An argument of a system call that points to memory.

/// What is behind a pointer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bytes, or structures without pointers.
    Bytes,
    /// A list of buffers (`struct iovec`).
    Parts,
    /// A message (`struct msghdr`).
    Message,
    /// Several (`struct mmsghdr`).
    Messages,
}

/// An argument that is a pointer.
#[derive(Clone, Copy)]
pub(super) struct Pointer {
    pub(super) argument: u8,
    pub(super) kind: Kind,
    /// Bytes of an element.
    pub(super) each: u16,
    /// The argument that has the number of elements, or [`ONE`].
    pub(super) count: u8,
    pub(super) writes: bool,
}

/// There is one element.
pub(super) const ONE: u8 = 6;

/// The kernel reads what is there.
pub(super) const fn from(argument: u8, kind: Kind, each: u16, count: u8) -> Pointer {
    Pointer {
        argument,
        kind,
        each,
        count,
        writes: false,
    }
}

/// The kernel writes, or may.
pub(super) const fn to(argument: u8, kind: Kind, each: u16, count: u8) -> Pointer {
    Pointer {
        writes: true,
        ..from(argument, kind, each, count)
    }
}
