//! User-level paging: keeps a program's large anonymous memory inside a budget, with a policy and a
//! store of the user's choice, without the program knowing.
//!
//! ```text
//!   program ──touches a missing page──▶ handler ──▶ core ──▶ store      (bytes at rest)
//!      │                                             │ ▲
//!      └──mmap, fork, sigaction…──▶ intercept ───────┘ └──── policy     (which page, when)
//!                                                    └─────▶ observe    (counters, traces)
//! ```
//!
//! The crate has two shapes. As a preloaded library (feature `preload`) it takes over the program's
//! memory calls and starts by itself. As an ordinary library it lends its policies and stores to
//! the simulator and to tests, and takes over nothing.
//!
//! Whatever runs while a page is missing may not allocate, take a lock of std, use thread-local
//! storage or panic: it runs inside signal handlers and on threads that libc does not know.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "x86-64 alone: addresses, sizes and answers of system calls are all 64 bits wide"
)]

#[cfg(target_arch = "x86_64")]
pub mod core;
#[cfg(target_arch = "x86_64")]
pub mod handler;
#[cfg(feature = "hints")]
pub mod hints;
#[cfg(target_arch = "x86_64")]
#[cfg_attr(
    not(any(test, debug_assertions, feature = "inject")),
    path = "inject_absent.rs"
)]
pub mod inject;
#[cfg(all(target_arch = "x86_64", feature = "preload"))]
mod intercept;
#[cfg(target_arch = "x86_64")]
pub mod mapped_files;
#[cfg(target_arch = "x86_64")]
pub mod observe;
pub mod page;
pub mod settings;
#[cfg(target_arch = "x86_64")]
pub mod start;
#[cfg(target_arch = "x86_64")]
pub mod store;
#[cfg(target_arch = "x86_64")]
pub mod sys;
