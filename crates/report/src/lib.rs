//! Findings as terminal text, JSON, one-file HTML and exports. Pure: returns strings and bytes.
#![forbid(unsafe_code)]
