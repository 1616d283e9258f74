//! Findings in the formats of other tools. Everything is written to a `Write`; nothing opens a
//! file.

pub mod fault_slices;
pub mod fault_tables;
pub mod firefox;
pub mod folded;
pub mod folded_stacks;
pub mod otlp;
pub mod parquet;
pub mod perfetto;
pub mod perfetto_samples;
pub mod pprof;
mod protobuf;
pub mod samples;
pub mod speedscope;
pub mod stacks;
mod strings;
pub mod svg;
pub mod tables;
mod thread_stacks;
pub mod timeline_rows;
