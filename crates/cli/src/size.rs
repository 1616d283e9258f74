//! Sizes as people type them, for clap.

use pagewise_model::units::{Bytes, NoSize};

/// A size above nothing.
///
/// # Errors
/// That it is none.
pub fn positive(text: &str) -> Result<Bytes, NoSize> {
    match text.parse()? {
        Bytes(0) => Err(NoSize(text.to_owned())),
        size => Ok(size),
    }
}
