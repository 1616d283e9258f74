//! Findings as terminal text, JSON, one-file HTML and exports. Pure: returns strings and bytes,
//! never opens a file, never queries the terminal.
//!
//! [`text`] is what a person reads first, [`json`] is for programs, [`html`] is the page to keep
//! and pass on. All three show the same [`pagewise_model::findings::Findings`]; none of them
//! computes a finding of its own.
#![forbid(unsafe_code)]

mod base64;
pub mod border;
pub mod causes;
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
