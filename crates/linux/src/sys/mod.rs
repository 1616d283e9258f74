//! All unsafe code of this crate: thin, checked wrappers of system calls and shared mappings.
#![allow(unsafe_code, reason = "this module is the fence around it")]

pub mod anonymous;
pub mod file_lock;
mod lean_child;
pub mod machine;
pub mod malloc;
pub mod mapped_file;
pub mod mount;
pub mod netlink;
pub mod numa;
pub mod own_code;
pub mod page_map;
pub mod perf_event;
pub mod perf_poll;
pub mod perf_ring;
pub mod probe;
pub mod process;
pub mod ptrace;
pub mod successor;
pub mod swap;
