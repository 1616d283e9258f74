//! Bad situations: no permission, no perf events, processes that vanish, crash, or never live long
//! enough, full disks, strange namespaces. Each must produce a clear message and keep the data
//! gathered.
//!
//! Tests that need root or a missing tool skip themselves visibly (`SKIPPED` on stderr, bypassing
//! the test harness's capture).

mod endings;
mod output;
mod permission;
#[path = "../../../../tests/skipped.rs"]
#[allow(unused_macros, reason = "the stage calls what the macro stands for")]
mod skipped;
mod stage;
mod targets;
mod watching;
