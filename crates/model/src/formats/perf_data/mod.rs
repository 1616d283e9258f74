//! perf.data: the standard container of Linux profiles. A Pagewise recording is one.
//!
//! [`Writer`] makes files that `perf report`, `perf script` and other tools open; [`synthesise`]
//! makes the records that tell how a process looked before recording began. What perf has no
//! section for (resources used, timeline, allocators) goes as JSON into a feature section whose
//! number perf passes over.

mod features;
mod layout;
pub mod synthesise;
mod tracing_data;
mod writer;

pub use features::{BuildId, Features};
pub use layout::sample_type;
pub use tracing_data::{TracepointFormat, TracingData};
pub use writer::{SourceAttr, WriteError, Writer};
