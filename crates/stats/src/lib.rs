//! Statistics without a word about what is measured: intervals, exchange tests, one seeded random
//! generator.
#![forbid(unsafe_code)]

pub mod blocks;
mod interval;
mod random;
pub mod signed_rank;
pub mod weighted;

pub use interval::{Centre, centre, median, student, student_p};
pub use random::Random;
pub use signed_rank::p_value;
