//! What the pager reports about itself: the regions' pages, and how soon pages are
//! used again. Looks at the core from above; what the core counts as it works is in
//! [`crate::figures`].

pub mod heat;
pub mod survey;

pub use crate::figures::histogram;
