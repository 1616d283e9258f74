//! The faults of a trace as Parquet tables: one row per fault, call tree and function, and
//! the distributions by layer as counts by bucket, which add up over any number of traces.

use super::parquet::{Column, ParquetWriter, Value};
use super::tables::identity::Identifier;
use pagewise_model::fault_paths::{Class, FaultPaths, Latency, Layer};
use pagewise_model::fault_row::{FaultRow, PathRow};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Columns of the table of faults; see [`FaultRow`] for their meaning.
pub const FAULTS: &[Column] = &[
    Column::optional("start_ns"),
    Column::optional("cpu"),
    Column::optional("pid"),
    Column::text("class"),
    Column::integer("path_id"),
    Column::integer("calls"),
    Column::integer("total_ns"),
    Column::integer("on_cpu_ns"),
    Column::integer("corrected_on_cpu_ns"),
    Column::integer("error_ns"),
    Column::integer("self_ns"),
    Column::integer("corrected_self_ns"),
    Column::integer("interrupts_ns"),
    Column::integer("runnable_ns"),
    Column::integer("blocked_ns"),
    Column::integer("off_cpu_ns"),
    Column::integer("lock_before_ns"),
    Column::integer("lock_ns"),
    Column::integer("corrected_lock_ns"),
    Column::bytes("run_id"),
];

/// Columns of the table of call trees, to which faults refer.
pub const PATHS: &[Column] = &[
    Column::integer("path_id"),
    Column::text("class"),
    Column::integer("faults"),
    Column::integer("calls"),
    Column::text("outline"),
    Column::bytes("run_id"),
];

/// Columns of the table of functions by kind of fault.
pub const FUNCTIONS: &[Column] = &[
    Column::text("function"),
    Column::text("class"),
    Column::integer("calls"),
    Column::integer("self_ns"),
    Column::integer("corrected_self_ns"),
    Column::integer("error_ns"),
    Column::bytes("run_id"),
];

/// Columns of the distributions: the faults of a kind, by bucket of their time in a layer.
pub const HISTOGRAMS: &[Column] = &[
    Column::text("layer"),
    Column::text("class"),
    Column::text("times"),
    Column::integer("low_ns"),
    Column::integer("high_ns"),
    Column::integer("faults"),
    Column::bytes("run_id"),
];

/// The table of faults, a row at a time.
pub struct FaultTable<W> {
    file: ParquetWriter<W>,
    run_id: Identifier,
    /// By class, in the order of [`Class::ALL`].
    classes: [String; Class::ALL.len()],
}

impl<W: Write> FaultTable<W> {
    /// Starts the table.
    ///
    /// # Errors
    /// When `out` can't be written.
    pub fn new(out: W, run_id: Identifier) -> io::Result<Self> {
        Ok(Self {
            file: ParquetWriter::new(out, "faults", FAULTS)?,
            run_id,
            classes: Class::ALL.map(|class| name_of(&class)),
        })
    }

    /// Adds a fault.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn write(&mut self, row: &FaultRow) -> io::Result<()> {
        let class = &self.classes[row.class as usize];
        self.file.write(&[
            Value::Optional(row.start_ns),
            Value::Optional(row.cpu.map(u64::from)),
            Value::Optional(row.pid.map(u64::from)),
            Value::Text(class),
            Value::Integer(row.path_id),
            Value::Integer(row.calls),
            Value::Integer(row.total_ns),
            Value::Integer(row.on_cpu_ns),
            Value::Integer(row.corrected_on_cpu_ns),
            Value::Integer(row.error_ns),
            Value::Integer(row.self_ns),
            Value::Integer(row.corrected_self_ns),
            Value::Integer(row.interrupts_ns),
            Value::Integer(row.runnable_ns),
            Value::Integer(row.blocked_ns),
            Value::Integer(row.off_cpu_ns),
            Value::Integer(row.lock_before_ns),
            Value::Integer(row.lock_ns),
            Value::Integer(row.corrected_lock_ns),
            Value::Bytes(&self.run_id),
        ])
    }

    /// Completes the file.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn finish(self) -> io::Result<W> {
        self.file.finish()
    }
}

/// Writes the table of call trees.
///
/// # Errors
/// When `out` can't be written.
pub fn write_paths<W: Write>(paths: &[PathRow], run_id: &Identifier, out: W) -> io::Result<W> {
    let mut file = ParquetWriter::new(out, "paths", PATHS)?;
    for path in paths {
        file.write(&[
            Value::Integer(path.path_id),
            Value::Text(&name_of(&path.class)),
            Value::Integer(path.faults),
            Value::Integer(path.calls),
            Value::Text(&path.outline),
            Value::Bytes(run_id),
        ])?;
    }
    file.finish()
}

/// Writes the table of functions, summed over their call paths.
///
/// # Errors
/// When `out` can't be written.
pub fn write_functions<W: Write>(
    findings: &FaultPaths,
    run_id: &Identifier,
    out: W,
) -> io::Result<W> {
    let mut sums: BTreeMap<(&str, Class), [u64; 4]> = BTreeMap::new();
    for node in &findings.call_map.nodes {
        let Some(function) = findings.call_map.functions.get(node.function as usize) else {
            continue;
        };
        let sum = sums.entry((function, node.class)).or_default();
        let parts = [
            node.calls,
            node.self_ns,
            node.corrected_self_ns,
            node.error_ns,
        ];
        for (sum, part) in sum.iter_mut().zip(parts) {
            *sum += part;
        }
    }
    let mut file = ParquetWriter::new(out, "functions", FUNCTIONS)?;
    for ((function, class), [calls, own, corrected, error]) in sums {
        file.write(&[
            Value::Text(function),
            Value::Text(&name_of(&class)),
            Value::Integer(calls),
            Value::Integer(own),
            Value::Integer(corrected),
            Value::Integer(error),
            Value::Bytes(run_id),
        ])?;
    }
    file.finish()
}

/// Writes the distributions by layer and kind, raw and corrected.
///
/// # Errors
/// When `out` can't be written.
pub fn write_histograms<W: Write>(
    findings: &FaultPaths,
    run_id: &Identifier,
    out: W,
) -> io::Result<W> {
    let mut file = ParquetWriter::new(out, "histograms", HISTOGRAMS)?;
    for class in &findings.classes {
        for layer in &class.layers {
            let both = [
                ("raw", &layer.latency.raw),
                ("corrected", &layer.latency.corrected),
            ];
            for (times, latency) in both {
                let key = (layer.layer, class.class, times);
                write_latency(&mut file, key, latency, run_id)?;
            }
        }
    }
    file.finish()
}

fn write_latency<W: Write>(
    file: &mut ParquetWriter<W>,
    (layer, class, times): (Layer, Class, &str),
    latency: &Latency,
    run_id: &Identifier,
) -> io::Result<()> {
    let (layer, class) = (name_of(&layer), name_of(&class));
    for &(low, high, count) in &latency.buckets {
        file.write(&[
            Value::Text(&layer),
            Value::Text(&class),
            Value::Text(times),
            Value::Integer(low),
            Value::Integer(high),
            Value::Integer(count),
            Value::Bytes(run_id),
        ])?;
    }
    Ok(())
}

/// The name of a kind or a layer in the JSON.
fn name_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}
