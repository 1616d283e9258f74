//! User-level paging: keeps a program's large anonymous memory inside a budget, with a policy and a
//! store of the user's choice, transparently to the program.
//!
//! ```text
//!   program ──touches a missing page──▶ handler ──▶ paging ──▶ store     (bytes at rest)
//!      │                                              │ ▲
//!      └──mmap, fork, sigaction…──▶ intercept ────────┘ └──── policy    (which page, when)
//!                                                     └─────▶ figures   (counters, traces)
//! ```
//!
//! The crate has two forms. As a preloaded library (feature `preload`) it takes over the program's
//! memory calls and starts by itself. As an ordinary library it provides its policies and stores to
//! the simulator and to tests, and takes over nothing.
//!
//! Code that runs while a page is missing must not allocate, take a lock of std, use thread-local
//! storage or panic: it runs inside signal handlers and on threads that libc does not know. So the
//! crate does without std, and the preloaded library has a panic handler of its own.

#![cfg_attr(not(any(test, loom)), no_std)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "x86-64 alone: addresses, sizes and answers of system calls are all 64 bits wide"
)]

extern crate alloc;
#[cfg(all(feature = "hints", not(test)))]
extern crate std;

#[cfg(all(target_arch = "x86_64", not(loom)))]
pub mod figures;
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub mod handler;
#[cfg(feature = "hints")]
pub mod hints;
#[cfg(all(target_arch = "x86_64", not(loom)))]
#[cfg_attr(
    not(any(test, debug_assertions, feature = "inject")),
    path = "inject_absent.rs"
)]
pub mod inject;
#[cfg(all(target_arch = "x86_64", not(loom), feature = "preload"))]
mod intercept;
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub mod mapped_files;
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub mod observe;
pub mod page;
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub mod paging;
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub mod start;
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub mod store;
#[cfg(target_arch = "x86_64")]
pub mod sync;
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub mod sys;
