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

pub mod page;
pub mod store;
pub mod sys;
