//! The Parquet table of timeline rows.

use super::rows::Row;
use anyhow::Context;
use pagewise_report::exports::parquet::{Column, ParquetWriter, Value};
use std::fs::File;
use std::io::BufWriter;

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

/// An open Parquet file.
pub struct ParquetFile(ParquetWriter<BufWriter<File>>);

impl ParquetFile {
    /// Begins the table in this file.
    pub fn create(file: File) -> anyhow::Result<Self> {
        let out = BufWriter::new(file);
        Ok(Self(ParquetWriter::new(out, "timeline", COLUMNS)?))
    }

    /// Adds a row.
    pub fn write(&mut self, row: &Row) -> anyhow::Result<()> {
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
        self.0
            .write(&values)
            .context("cannot write the Parquet file")
    }

    /// Writes what is left and the metadata, without which nothing can be read.
    pub fn finish(self) -> anyhow::Result<()> {
        self.0
            .finish()
            .context("cannot complete the Parquet file")?;
        Ok(())
    }
}
