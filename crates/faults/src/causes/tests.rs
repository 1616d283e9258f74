//! Complete attributions of synthetic event streams.

mod naive;
mod streams;

pub(crate) use streams::{Recorded, Stream, sidecar};
