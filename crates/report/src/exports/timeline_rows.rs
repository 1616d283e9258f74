//! The measurements of `watch` as a Parquet table.

use super::parquet::{Column, ParquetWriter, Value};
use pagewise_model::watch::Row;
use std::io::{self, BufWriter, Write};

const COLUMNS: &[Column] = &[
    Column::real("time_s"),
    Column::integer("vsize_bytes"),
    Column::integer("rss_bytes"),
    Column::optional("pss_bytes"),
    Column::integer("swap_bytes"),
    Column::integer("minor_faults"),
    Column::integer("major_faults"),
    Column::real("minor_faults_per_s"),
    Column::real("major_faults_per_s"),
    Column::real("user_s"),
    Column::real("system_s"),
    Column::integer("processes"),
    Column::integer("threads"),
];

/// A table being written.
pub struct TimelineRows<W: Write>(ParquetWriter<BufWriter<W>>);

impl<W: Write> TimelineRows<W> {
    /// Starts the table in this file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(file: W) -> io::Result<Self> {
        let out = BufWriter::new(file);
        Ok(Self(ParquetWriter::new(out, "timeline", COLUMNS)?))
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, row: &Row) -> io::Result<()> {
        let values = [
            Value::Real(row.time_s),
            Value::Integer(row.vsize_bytes),
            Value::Integer(row.rss_bytes),
            Value::Optional(row.pss_bytes),
            Value::Integer(row.swap_bytes),
            Value::Integer(row.minor_faults),
            Value::Integer(row.major_faults),
            Value::Real(row.minor_faults_per_s),
            Value::Real(row.major_faults_per_s),
            Value::Real(row.user_s),
            Value::Real(row.system_s),
            Value::Integer(u64::from(row.processes)),
            Value::Integer(u64::from(row.threads)),
        ];
        self.0.write(&values)
    }

    /// Writes the remaining rows and the metadata, without which the file is unreadable.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn finish(self) -> io::Result<()> {
        self.0.finish()?;
        Ok(())
    }
}
