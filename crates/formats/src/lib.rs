//! File formats: bytes in, model out, and back. Nothing here opens a file.
//!
//! A new input format is one module here and one line of the sniffing table in `sniff`.

pub mod folded;
pub mod function_graph;
pub mod memory_trace;
pub mod perf_data;
pub mod perf_script;
mod profile_text;
pub mod sniff;
mod text;
pub mod trace_dat;
