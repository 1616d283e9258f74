//! Findings as terminal text, JSON, one-file HTML and exports. Pure: returns strings and bytes,
//! never opens a file, never asks the terminal.
//!
//! [`text`] is what a person reads first, [`json`] what a program reads, [`html`] the page that is
//! kept and passed on. All three show the same [`pagewise_model::findings::Findings`]; none of
//! them computes a finding of its own.
#![forbid(unsafe_code)]

mod base64;
pub mod border;
pub mod exports;
pub mod gate;
pub mod html;
pub mod json;
mod lines;
pub mod metrics;
pub mod settings_export;
pub mod text;
pub mod visible;

pub use text::{fault_diff, fault_paths};
