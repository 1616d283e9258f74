//! A picture of page sizes by address and time.

use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Huge pages by address and time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HugeMap {
    /// First address of each row, hexadecimal, ascending.
    pub starts: Vec<String>,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// A string for each row, a character for each moment: `#` all huge, `.` all small, `1` to `9`
    /// tenths that are huge, a blank where there was no memory. Moments are equal stretches of
    /// time.
    pub rows: Vec<String>,
    /// Time from the beginning of the first moment to the end of the last.
    pub until: Nanos,
}

/// Largest number of rows; where there are more pieces of memory, neighbours share one.
const MOST_ROWS: usize = 128;

impl HugeMap {
    /// The picture of pieces of `piece_bytes` at `addresses` (ascending). Each of the `moments`,
    /// the last of which ends at `until`, lists the pieces that existed, by address, and whether
    /// they were huge.
    pub fn new<M>(
        piece_bytes: u64,
        addresses: &[u64],
        until: Nanos,
        moments: impl IntoIterator<Item = M>,
    ) -> Self
    where
        M: IntoIterator<Item = (u64, bool)>,
    {
        let in_a_row = addresses.len().div_ceil(MOST_ROWS).max(1);
        let mut map = Self {
            starts: addresses
                .iter()
                .step_by(in_a_row)
                .map(|start| format!("{start:#x}"))
                .collect(),
            row_bytes: piece_bytes * in_a_row as u64,
            rows: vec![String::new(); addresses.len().div_ceil(in_a_row)],
            until,
        };
        for moment in moments {
            let mut counts = vec![(0_u32, 0_u32); map.rows.len()];
            for (address, is_huge) in moment {
                if let Ok(at) = addresses.binary_search(&address) {
                    let (huge, all) = &mut counts[at / in_a_row];
                    *huge += u32::from(is_huge);
                    *all += 1;
                }
            }
            for (row, (huge, all)) in map.rows.iter_mut().zip(counts) {
                row.push(letter(huge, all));
            }
        }
        map
    }
}

fn letter(huge: u32, all: u32) -> char {
    match (huge, all) {
        (_, 0) => ' ',
        (0, _) => '.',
        (huge, all) if huge == all => '#',
        (huge, all) => {
            let tenths = (huge * 10 / all).clamp(1, 9);
            char::from_digit(tenths, 10).unwrap_or('5')
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_has_a_row_and_what_is_not_there_is_blank() {
        let moments = [
            vec![(0x10, true)],
            vec![(0x10, false), (0x30, true)],
            vec![(0x20, true)],
        ];
        let map = HugeMap::new(0x10, &[0x10, 0x30], Nanos(3), moments);
        assert_eq!(map.starts, ["0x10", "0x30"]);
        assert_eq!(map.rows, ["#. ", " # "]);
        assert_eq!(map.row_bytes, 0x10);
    }

    #[test]
    fn neighbours_share_a_row_where_there_are_many() {
        let addresses: Vec<u64> = (0..1280).collect();
        let half = addresses.iter().map(|&at| (at, at % 2 == 0));
        let none = addresses.iter().map(|&at| (at, false));
        let map = HugeMap::new(
            1,
            &addresses,
            Nanos(2),
            [half.collect::<Vec<_>>(), none.collect()],
        );
        assert_eq!(map.rows.len(), 128);
        assert_eq!(map.row_bytes, 10);
        assert!(map.rows.iter().all(|row| row == "5."));
    }
}
