//! Who holds the memory: samples a program's allocations with their call stacks.
//!
//! ```text
//!   program ──malloc, free…──▶ hooks ──(one of some thousand)──▶ sampling ──▶ segment  (shared memory)
//!                                │                                 │ │            │
//!                                ▼                                 │ └▶ live      ▼
//!                       the real allocator                 unwind ◀┘          pagewise reads
//! ```
//!
//! The crate has two forms. As a preloaded library (feature `preload`) it stands before the program's
//! allocator. As an ordinary library it provides the reader of what the other form wrote, and takes over
//! nothing.
//!
//! A block is sampled with probability 1 − exp(−size / period), independently of all others (a Poisson
//! process over allocated bytes), so sums over samples, each divided by its probability, are unbiased.
//! Between two samples, a call costs one subtraction, and a free one load and one comparison.
//!
//! What runs inside the program's calls must not allocate, and touches nothing of std. Its own memory is
//! static; that which describes the process is wiped by the kernel in a forked child (`MADV_WIPEONFORK`),
//! which so starts anew, whichever way it was forked.

#![cfg_attr(all(feature = "preload", not(test)), no_std)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "x86-64 alone: addresses, sizes and answers of system calls are all 64 bits wide"
)]
#![cfg_attr(
    test,
    allow(dead_code, reason = "the hooks use what tests use in part")
)]

#[cfg(all(target_arch = "x86_64", any(feature = "preload", test)))]
mod cfi;
#[cfg(any(feature = "preload", test))]
mod draw;
#[cfg(all(target_arch = "x86_64", feature = "preload", not(test)))]
mod hooks;
pub mod layout;
#[cfg(all(target_arch = "x86_64", any(feature = "preload", test)))]
mod live;
#[cfg(all(target_arch = "x86_64", any(feature = "preload", test)))]
mod objects;
#[cfg(any(not(feature = "preload"), test))]
pub mod reading;
#[cfg(all(target_arch = "x86_64", feature = "preload", not(test)))]
mod sampling;
#[cfg(all(target_arch = "x86_64", any(feature = "preload", test)))]
mod segment;
#[cfg(all(target_arch = "x86_64", any(feature = "preload", test)))]
mod sys;
#[cfg(all(target_arch = "x86_64", feature = "preload", not(test)))]
mod thread;
#[cfg(all(target_arch = "x86_64", any(feature = "preload", test)))]
mod unwind;

/// The variable that names the shared file for the preloaded library.
pub const VARIABLE: &str = "PAGEWISE_SAMPLER";
