//! The tables of many hosts: folders of Parquet files.

mod by_run;
mod folders;
mod runs;
mod samples;
mod schemas;

pub use by_run::ByRun;
pub use folders::{Data, Folder, Unusable, checked};
pub use runs::{Run, Runs};
pub use samples::Samples;
pub use schemas::{TABLES, arrow_schema};

/// An identifier of 128 bits.
pub type Identifier = [u8; 16];
