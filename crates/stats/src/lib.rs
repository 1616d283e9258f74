//! Statistics without a word about what is measured: intervals, exchange tests, hosts beside their like, one
//! seeded random generator.
#![forbid(unsafe_code)]

pub mod blocks;
mod distributions;
pub mod hosts;
mod interval;
mod random;
pub mod signed_rank;
pub mod weighted;

pub use distributions::student_tail;
pub use interval::{Centre, centre, median, student};
pub use random::Random;
pub use signed_rank::p_value;
