//! The columns that this version knows, as Arrow's types. A file that lacks one of the later columns
//! has nulls there; columns of later versions are not read.

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use pagewise_report::exports::fault_tables::{FAULTS, FUNCTIONS, HISTOGRAMS, PATHS};
use pagewise_report::exports::parquet::{Column, Kind};
use pagewise_report::exports::tables::schema::{
    ACCOUNTS, FINDINGS, FRAMES, LOSSES, PAGE_SIZES, PAGING, RUNS, SAMPLES, SETTINGS, STACKS,
};
use std::sync::Arc;

/// All tables with their columns.
pub const TABLES: [(&str, &[Column]); 14] = [
    ("runs", RUNS),
    ("settings", SETTINGS),
    ("losses", LOSSES),
    ("accounts", ACCOUNTS),
    ("findings", FINDINGS),
    ("samples", SAMPLES),
    ("stacks", STACKS),
    ("frames", FRAMES),
    ("paging", PAGING),
    ("page_sizes", PAGE_SIZES),
    ("faults", FAULTS),
    ("paths", PATHS),
    ("functions", FUNCTIONS),
    ("histograms", HISTOGRAMS),
];

/// The schema of a table.
pub fn arrow_schema(columns: &[Column]) -> SchemaRef {
    let fields = columns.iter().map(|column| {
        // Nullable, since files of earlier versions may lack the column.
        Field::new(column.name, data_type(column.kind), true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Views spare the engine a copy of each text.
fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Integer | Kind::OptionalInteger => DataType::Int64,
        Kind::Real | Kind::OptionalReal => DataType::Float64,
        Kind::Text | Kind::OptionalText => DataType::Utf8View,
        Kind::Bytes => DataType::BinaryView,
        Kind::Identifiers => {
            DataType::List(Arc::new(Field::new("element", DataType::BinaryView, false)))
        }
    }
}
