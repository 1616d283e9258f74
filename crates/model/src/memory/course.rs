//! The memory of a run over time: what each look added up to.

use super::{MemoryKind, MemoryMoment};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// The sums of one look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryPoint {
    /// Time from the start of the program to the end of the look.
    pub elapsed_ns: u64,
    /// Resident memory, pages that processes share once.
    pub resident: Bytes,
    /// What it is, by kind; kinds without bytes are left out.
    pub layers: Vec<MemoryLayer>,
}

/// Resident memory of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryLayer {
    /// What it is.
    pub kind: MemoryKind,
    /// How much of it.
    pub bytes: Bytes,
}

impl MemoryPoint {
    /// The sums of `moment`, which was over after this time.
    #[must_use]
    pub fn new(moment: &MemoryMoment, elapsed_ns: u64) -> Self {
        let mut layers: Vec<MemoryLayer> = Vec::new();
        // Rows of one kind follow each other.
        for row in moment.rows().iter().filter(|row| row.resident.0 > 0) {
            match layers.last_mut() {
                Some(last) if last.kind == row.kind => last.bytes += row.resident,
                _ => layers.push(MemoryLayer {
                    kind: row.kind,
                    bytes: row.resident,
                }),
            }
        }
        Self {
            elapsed_ns,
            resident: moment.total(),
            layers,
        }
    }

    /// Bytes of this kind.
    #[must_use]
    pub fn bytes(&self, kind: MemoryKind) -> u64 {
        let layers = self.layers.iter().filter(|layer| layer.kind == kind);
        layers.map(|layer| layer.bytes.0).sum()
    }
}
