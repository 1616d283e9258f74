//! The tables of many hosts: Parquet files in a folder or a bucket.

mod by_run;
mod files;
mod folders;
mod local;
mod runs;
mod samples;
mod schemas;
mod store;
mod views;

pub use by_run::ByRun;
pub use files::Files;
pub use folders::{Data, Folder, Unusable, Usable, checked, listed};
pub use local::Seen;
pub use runs::{Run, Runs};
pub use samples::Samples;
pub use schemas::{TABLES, arrow_schema};
pub use store::Store;
#[cfg(feature = "ballista")]
pub use views::with_views;
pub use views::{in_types_of, without_views};

/// An identifier of 128 bits.
pub type Identifier = [u8; 16];
