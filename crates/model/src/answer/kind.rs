//! What a JSON document of ours is, as its first fields show.

use super::SCHEMA_VERSION;
use serde::de::IntoDeserializer;
use serde::de::value::Error as Unknown;
use serde::{Deserialize, Serialize};

/// Kinds of documents, each with a schema of its own (`docs/schema`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A run: [`crate::findings::Run`].
    Run,
    /// Settings that were tried: [`crate::tuning::Tuning`].
    Tuning,
    /// Page sizes of a process: [`crate::balance::Balance`].
    HugeBalance,
    /// A machine's TLB: [`crate::probe::Probe`].
    HugeProbe,
    /// Simulated TLBs: [`crate::huge_simulation::HugeSimulation`].
    HugeSimulation,
    /// Where samples fell: [`crate::profile_findings::ProfileSummary`].
    Profile,
    /// Paths of faults in the kernel: [`crate::fault_paths::TracedFaults`].
    FaultPaths,
    /// Two traces of fault paths.
    FaultDiff,
    /// Two profiles.
    ProfileDiff,
    /// Two runs.
    RunDiff,
    /// Runs of two programs, judged.
    Gate,
    /// Runs against which later ones are judged.
    GateBaseline,
    /// A run inside a memory budget: [`crate::paged_run::PagedRun`].
    PagedRun,
    /// The course of such a run: [`crate::paging::PagingTimeline`].
    PagingTimeline,
    /// Policies on a recorded run.
    PagingSimulation,
    /// What the machine allows.
    Check,
    /// What allocators cost.
    AllocatorBench,
    /// What page faults cost.
    FaultBench,
    /// Frequent patterns: [`crate::mined::Mined`].
    Mined,
    /// Page sizes that were taken back: [`crate::huge_undo::HugeUndo`].
    HugeUndo,
    /// Where memory went: [`crate::memory::Memory`].
    Memory,
    /// The smallest memory limit: [`crate::memory_limit::MemoryLimit`].
    MemoryLimit,
    /// One reading of a process tree: [`crate::watch::Row`].
    Watch,
}

impl Kind {
    /// The kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name: serde::de::value::StrDeserializer<'_, Unknown> = name.into_deserializer();
        Self::deserialize(name).ok()
    }
}

/// The fields by which a document is known.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Head {
    /// What it is; older documents have none.
    pub kind: Option<String>,
    /// Version of its schema.
    pub schema_version: Option<u32>,
}

impl Head {
    /// Reads these fields.
    ///
    /// # Errors
    /// When `text` is not a JSON object.
    pub fn parse(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }

    /// Why this version cannot read the rest, if another version wrote it.
    #[must_use]
    pub fn other_version(&self) -> Option<String> {
        let written_by = match self.schema_version {
            Some(SCHEMA_VERSION) => return None,
            Some(found) if found > SCHEMA_VERSION => format!("is {found}, of a later pagewise"),
            Some(found) => format!("is {found}, of an earlier pagewise"),
            None => "is missing".to_owned(),
        };
        Some(format!(
            "its schema_version {written_by}; this pagewise reads {SCHEMA_VERSION}"
        ))
    }

    /// The kind, if this version knows it.
    #[must_use]
    pub fn known(&self) -> Option<Kind> {
        Kind::named(self.kind.as_deref()?)
    }
}
