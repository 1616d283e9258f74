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

/// A table: heads with their looks, then rows.
fn sheet(id: &str, title: &str, columns: &[(&str, Look)], rows: Vec<Vec<Cell>>) -> Sheet {
    let columns = columns.iter().map(|&(head, look)| Column {
        head: head.to_owned(),
        look,
    });
    Sheet {
        id: id.to_owned(),
        title: title.to_owned(),
        nav: title.to_owned(),
        columns: columns.collect(),
        rows,
        ..Sheet::default()
    }
}
