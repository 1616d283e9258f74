//! Pages of commands whose answers are tables: `tune`, `gate`, `mine`, `check`, `bench`.

mod annotate;
mod bench;
mod check;
mod gate;
mod mined;
mod tune;

pub use annotate::render_annotated;
pub use bench::{render_allocators, render_faults};
pub use check::render_check;
pub use gate::render_gate;
pub use mined::render_mined;
pub use tune::render_tuning;

use super::sheets::{Cell, Column, Look, Sheet};

/// A table: heads with their looks, then rows. Columns in which nothing stands are left out.
fn sheet(id: &str, title: &str, columns: &[(&str, Look)], rows: Vec<Vec<Cell>>) -> Sheet {
    let says =
        |at: usize| rows.is_empty() || rows.iter().any(|row| row.get(at) != Some(&Cell::default()));
    let kept: Vec<usize> = (0..columns.len()).filter(|&at| says(at)).collect();
    let columns = kept.iter().map(|&at| Column {
        head: columns[at].0.to_owned(),
        look: columns[at].1,
    });
    let columns = columns.collect();
    let kept_of = |row: Vec<Cell>| {
        let cells = row.into_iter().enumerate();
        cells
            .filter_map(|(at, cell)| kept.contains(&at).then_some(cell))
            .collect()
    };
    let rows = rows.into_iter().map(kept_of).collect();
    Sheet {
        id: id.to_owned(),
        title: title.to_owned(),
        nav: title.to_owned(),
        columns,
        rows,
        ..Sheet::default()
    }
}
