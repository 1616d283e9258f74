//! Page walks by page size, if the CPU counts them: event tables as data, one TOML file for each
//! microarchitecture, chosen by `/proc/cpuinfo` (cpuid on x86, MIDR on Arm).

mod counting;
mod table;

pub use counting::{Count, Counting, Refusal};
pub use table::{Cpu, Event, Table, table_for, tables};
