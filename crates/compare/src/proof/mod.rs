//! Proofs, except for the runs: which setting won, whether predictions were right, and the texts
//! about it.

mod choice;
pub mod cold;
pub mod driven;
pub mod fate;
pub mod predictions;
mod trial;
mod words;

pub use choice::{best, most_promising};
pub use trial::{avoids_nothing, by_gain, changes_nothing, promising, smallest, trial_gain};
pub use words::{doubt_note, noise_note, not_run, summary, why_no_more};
