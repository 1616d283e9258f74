//! What the pager reports about itself: the regions' pages, and how soon pages are used again.
//! Examines the core from above; figures that the core counts as it works are in
//! [`crate::figures`].

pub mod heat;
pub mod survey;
