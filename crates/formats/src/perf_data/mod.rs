//! perf.data: the standard container of Linux profiles. A Pagewise recording is one.
//!
//! [`PerfData`] reads files of any tool, without copying and in time order; what it cannot use is
//! counted. [`Writer`] makes files that `perf report`, `perf script` and other tools open;
//! [`synthesise`] makes the records that describe a process as it was before recording began. Data
//! for which perf has no section (resources used, timeline, allocators) goes as JSON into a feature
//! section whose number perf skips.
//!
//! Absent: big-endian files, and the data of AUX area tracing (Intel PT, CoreSight).

mod attr;
pub mod command_line;
mod cursor;
mod deferred;
mod error;
mod features;
mod groups;
mod header;
mod layout;
mod order;
mod reader;
mod record;
mod sample;
mod sources;
pub mod synthesise;
mod tracing_data;
mod unpack;
mod writer;

pub use error::{Damage, ReadError};
pub use features::{BuildId, Features, SourceAttr};
pub use header::{Cut, Origin};
pub use layout::sample_type;
pub use order::Outliers;
pub use reader::{PerfData, Reading};
pub use tracing_data::{TracepointFormat, TracingData};
pub use writer::{WriteError, Writer, replace_sidecar};
