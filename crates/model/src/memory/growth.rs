//! What grew from one look to the next.

use super::{BlockGroup, HeapPart, MemoryKind, MemoryMoment, MemoryRow, StackChange};
use crate::allocator::AllocatorKind;
use crate::units::{Bytes, Estimate};
use serde::{Deserialize, Serialize};

/// What differs between two looks: at one process, or at two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Growth {
    /// Time between the starts of the two looks; absent where they are at two runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ns: Option<u64>,
    /// Bytes of blocks in use that were added; negative where they shrank.
    pub live: i64,
    /// Rows whose size differs, the one that grew most first.
    pub rows: Vec<RowChange>,
    /// Groups of blocks that grew beyond the error of the draws, the one that grew most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockChange>,
    /// Call stacks that hold more or less than before, where allocations of both runs were sampled; the one
    /// that grew most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<StackChange>,
}

/// A row at two moments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RowChange {
    /// What it is.
    pub kind: MemoryKind,
    /// The allocator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocator: Option<AllocatorKind>,
    /// The part of the allocator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<HeapPart>,
    /// In memory at the first look.
    pub before: Bytes,
    /// In memory at the second.
    pub after: Bytes,
}

impl RowChange {
    /// Bytes that were added.
    #[must_use]
    pub fn added(&self) -> i64 {
        difference(self.before, self.after)
    }
}

/// A group of blocks at two moments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockChange {
    /// The group at the second look.
    pub group: BlockGroup,
    /// Bytes that were added.
    pub added: Estimate,
}

impl Growth {
    /// What differs between the looks, which began so far apart.
    #[must_use]
    pub fn between(before: &MemoryMoment, after: &MemoryMoment, elapsed_ns: Option<u64>) -> Self {
        let rows = rows(&before.rows(), &after.rows());
        let is_live = |row: &&RowChange| matches!(row.kind, MemoryKind::Live | MemoryKind::Cached);
        Self {
            elapsed_ns,
            live: rows.iter().filter(is_live).map(RowChange::added).sum(),
            rows,
            blocks: blocks(
                &before.groups(|process| &process.blocks),
                &after.groups(|process| &process.blocks),
            ),
            stacks: Vec::new(),
        }
    }
}

fn difference(before: Bytes, after: Bytes) -> i64 {
    after.0.cast_signed().saturating_sub(before.0.cast_signed())
}

fn rows(before: &[MemoryRow], after: &[MemoryRow]) -> Vec<RowChange> {
    let change = |row: &MemoryRow, before: Bytes, after: Bytes| RowChange {
        kind: row.kind,
        allocator: row.allocator,
        part: row.part,
        before,
        after,
    };
    let of = |rows: &[MemoryRow], row: &MemoryRow| {
        let found = rows.iter().find(|one| one.is_like(row));
        found.map_or(Bytes(0), |one| one.resident)
    };
    let known = after
        .iter()
        .map(|row| change(row, of(before, row), row.resident));
    let gone = before
        .iter()
        .filter(|row| !after.iter().any(|one| one.is_like(row)))
        .map(|row| change(row, row.resident, Bytes(0)));
    let mut rows: Vec<RowChange> = known.chain(gone).collect();
    rows.retain(|row| row.added() != 0);
    rows.sort_by_key(|row| std::cmp::Reverse(row.added()));
    rows
}

fn blocks(before: &[BlockGroup], after: &[BlockGroup]) -> Vec<BlockChange> {
    let mut found: Vec<BlockChange> = after
        .iter()
        .map(|group| {
            let known = before.iter().find(|one| one.is_like(group));
            let old = known.map_or(Estimate::exact(0.0), |one| one.bytes);
            BlockChange {
                group: group.clone(),
                added: group.bytes.minus(old),
            }
        })
        .filter(|change| change.added.low > 0.0)
        .collect();
    found.sort_by(|one, other| other.added.value.total_cmp(&one.added.value));
    found
}
