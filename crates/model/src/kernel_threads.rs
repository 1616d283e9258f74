//! The kernel's own threads that manage memory.

use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// What one of them used while a program was observed, whatever it worked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelThread {
    /// Its name: `khugepaged`, `ksmd`, `kswapd0`, `kcompactd0`…
    pub name: String,
    /// CPU time.
    pub cpu: Nanos,
}
