//! The released library: nothing is taken away and nothing fails on purpose.

use crate::store::StoreError;
use crate::store::device::{Operation, Transfer};
use crate::sys::uffd::Progress;

/// Nothing is taken away.
#[must_use]
pub const fn takes_away(_name: &str) -> bool {
    false
}

/// Nothing is to be read.
pub const fn prepare() {}

/// What the kernel tells.
pub const fn told(progress: Progress, _wanted: u64) -> Progress {
    progress
}

/// No fault is described.
#[must_use]
pub const fn store_faults() -> Option<String> {
    None
}

/// Why a description is refused.
pub const FORM: &str = "this build cannot inject transfer failures";

/// There is none.
#[derive(Debug)]
pub enum Injected {}

impl Injected {
    /// No description is one.
    #[must_use]
    pub const fn parse(_text: &str) -> Option<Self> {
        None
    }

    /// Cannot be called.
    ///
    /// # Safety
    /// None is needed.
    pub unsafe fn transfer(
        &self,
        _operation: Operation,
        _transfer: &Transfer,
        _plain: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match *self {}
    }
}
