//! The released library: nothing is disabled and nothing fails on purpose.

use crate::store::transfer::{Operation, StoreError, Transfer};
use crate::sys::progress::Progress;
use alloc::string::String;

/// Nothing is disabled.
#[must_use]
pub const fn takes_away(_name: &str) -> bool {
    false
}

/// There is no setting to read.
pub const fn prepare() {}

/// No fault takes its time.
pub const fn dawdle() {}

/// The kernel's result, unchanged.
pub fn moved(wanted: u64, really: impl FnOnce(u64) -> Progress) -> Progress {
    really(wanted)
}

/// No fault is described.
#[must_use]
pub const fn store_faults() -> Option<String> {
    None
}

/// Why a description is refused.
pub const FORM: &str = "this build cannot inject transfer failures";

/// No value of this type exists.
#[derive(Debug)]
pub enum Injected {}

impl Injected {
    /// No description is valid.
    #[must_use]
    pub const fn parse(_text: &str) -> Option<Self> {
        None
    }

    /// Cannot be called.
    ///
    /// # Safety
    /// No requirement.
    pub unsafe fn transfer(
        &self,
        _operation: Operation,
        _transfer: &Transfer,
        _plain: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match *self {}
    }
}
