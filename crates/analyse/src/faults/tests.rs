//! Whole attributions of made-up event streams.

mod naive;
mod streams;

pub(crate) use streams::{Recorded, Stream, sidecar};
