//! What `pagewise run` would cost a program that a memory limit holds down, and what it did cost.

use crate::units::{Bytes, Estimate, Nanos};
use serde::{Deserialize, Serialize};

/// A forecast from one run at a memory limit. Its intervals span what the model leaves open; they are
/// not those of a sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PagingForecast {
    /// What it rests on; absent where nothing can be foretold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<ForecastBasis>,
    /// The slowdown by size, largest size first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<ForecastSize>,
    /// Why nothing can be foretold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// What was seen of the program at its limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForecastBasis {
    /// Peak of its resident and swapped memory.
    pub needs: Bytes,
    /// Peak of its resident memory.
    pub had: Bytes,
    /// Elapsed time without what was lost.
    pub unhindered: Nanos,
    /// Elapsed time lost by waiting for evicted pages and for room.
    pub lost: Nanos,
    /// Faults that waited for an evicted page.
    pub waits: u64,
    /// Pages read back.
    pub pages: u64,
}

/// One size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForecastSize {
    /// Percentage of the memory that the program needs.
    pub percent: u8,
    /// The budget.
    pub memory: Bytes,
    /// Elapsed time, as a multiple of that without a limit.
    pub slowdown: Estimate,
}

/// A forecast, and the run that it was about.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForecastOutcome {
    /// The slowdown that was foretold for this budget.
    pub expected: Estimate,
    /// The elapsed time of this run, as a multiple of the time without a limit that the forecast
    /// assumes.
    pub measured: f64,
    /// How far the forecast is above the measurement, as a share of it: 0.25 means 25 % too much.
    pub off_by: f64,
}
