//! The result of a call that copies or moves pages.

/// How far a copying call progressed: bytes done, and the `errno` that stopped it (0: none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes done.
    pub bytes: u64,
    /// Why it stopped.
    pub errno: i32,
}
