//! Two whole runs of a command side by side: what changed for the user, through which causes of
//! faults, and which settings differ.

use crate::answer::{Evidence, Kind};
use crate::findings::Cause;
use crate::run::RunCost;
use crate::side::SettingChange;
use crate::side::Side;
use crate::units::Estimate;
use serde::{Deserialize, Serialize};

/// How run B differs from run A.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunDiff {
    /// The first run.
    pub a: Side<RunCost>,
    /// The second run.
    pub b: Side<RunCost>,
    /// Time, faults and memory.
    pub figures: Vec<FigureChange>,
    /// Faults by cause, the largest change first.
    pub causes: Vec<CauseChange>,
    /// Settings that differ, those of the program first.
    pub settings: Vec<SettingChange>,
}

impl Evidence for RunDiff {
    const KIND: Kind = Kind::RunDiff;
}

impl RunDiff {
    /// Whether any figure differs by more than two runs of the same program do.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.figures.iter().any(|figure| figure.differs)
    }
}

/// What a figure of a run counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// CPU time, ns.
    CpuTime,
    /// Elapsed time, ns.
    ElapsedTime,
    /// Minor and major page faults.
    Faults,
    /// Page faults that needed I/O.
    MajorFaults,
    /// Peak resident memory of any one process, or of all together under a budget that they share,
    /// bytes.
    PeakMemory,
    /// Page faults that waited for the store of `pagewise run`.
    Refaults,
    /// Pages that `pagewise run` wrote to its store.
    PagesWritten,
}

/// A figure of both runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigureChange {
    /// What it counts.
    pub quantity: Quantity,
    /// In A.
    pub a: f64,
    /// In B.
    pub b: f64,
    /// Whether they differ by more than two runs of the same program on one machine do.
    pub differs: bool,
}

/// Faults of one cause in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CauseChange {
    /// The cause.
    pub cause: Cause,
    /// Its name for display.
    pub label: String,
    /// Faults in A, with their 95 % interval.
    pub a: Estimate,
    /// Faults in B.
    pub b: Estimate,
    /// Whether the intervals are apart, and the change is a tenth or more of the faults.
    pub differs: bool,
}
