//! One file per command: options → tables → statistics → answer.

mod complete;
pub mod diff;
mod findings;
pub mod history;
mod hosts;
pub mod outliers;
pub mod put;
pub mod save;
mod settings;
pub mod sql;
pub mod top;
pub mod units;
