//! Sizes as users type them, for clap.

use pagewise_model::units::{Bytes, NoSize};

/// A size above zero.
///
/// # Errors
/// If it is not one.
pub fn positive(text: &str) -> Result<Bytes, NoSize> {
    match text.parse()? {
        Bytes(0) => Err(NoSize(text.to_owned())),
        size => Ok(size),
    }
}
