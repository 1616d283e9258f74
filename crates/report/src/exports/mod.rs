//! Findings in the formats of other tools. Everything is written to a `Write`; nothing opens a
//! file.

pub mod fault_slices;
pub mod fault_tables;
pub mod folded;
pub mod parquet;
pub mod perfetto;
