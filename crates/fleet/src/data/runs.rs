//! The table `runs`, read first: it says which host, day and kernel each run belongs to.

use super::folders::each;
use super::schemas::arrow_schema;
use super::{Data, Identifier, Store, Unusable};
use anyhow::Result;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringViewArray, new_null_array,
};
use datafusion::arrow::compute::{cast, concat_batches, filter_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pagewise_report::exports::tables::schema::RUNS;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// One recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// In all its rows.
    pub id: Identifier,
    /// The folder of its tables, by number.
    pub folder: usize,
    /// The host: as the path says, or by its own name.
    pub host: String,
    /// The day: as the path says, or from the time at which the run started (UTC).
    pub day: String,
    /// What the host is for, if the path says.
    pub role: String,
    /// What was observed: `machine`, `processes`, or the `run` of a command.
    pub scope: String,
    /// The kernel's release.
    pub kernel: String,
    /// The CPU's model.
    pub cpu: String,
    /// Observed time in nanoseconds; 0 where unknown.
    pub elapsed_ns: f64,
    /// CPU time in nanoseconds; 0 where unknown.
    pub cpu_ns: f64,
    /// Peak resident memory; 0 where unknown.
    pub peak_bytes: f64,
}

/// All runs.
#[derive(Debug)]
pub struct Runs {
    /// Each once.
    pub runs: Vec<Run>,
    /// The table, with the labels of paths as further columns.
    pub table: RecordBatch,
    /// Runs that are there more than once.
    pub repeated: usize,
}

impl Runs {
    /// None, for a query that asks for none.
    pub fn unread(data: &Data) -> Self {
        Self {
            runs: Vec::new(),
            table: RecordBatch::new_empty(schema_of(data)),
            repeated: 0,
        }
    }

    /// Reads them. Folders whose runs cannot be read are left out.
    pub fn read(data: &Data) -> Result<(Self, Vec<Unusable>)> {
        let schema = schema_of(data);
        let numbers: Vec<usize> = (0..data.folders.len()).collect();
        let parts = each(&data.store, &numbers, |&folder| {
            of_folder(data, folder, &schema)
        });
        let mut unusable = Vec::new();
        let (mut batches, mut runs) = (Vec::new(), Vec::new());
        let mut met = HashSet::new();
        let mut repeated = 0;
        for (folder, (batch, bad)) in parts.into_iter().enumerate() {
            unusable.extend(bad);
            let mut keep = Vec::new();
            for run in of_batch(&batch, folder) {
                let is_new = met.insert(run.id);
                keep.push(is_new);
                match is_new {
                    true => runs.push(run),
                    false => repeated += 1,
                }
            }
            let keep = BooleanArray::from(keep);
            batches.push(filter_record_batch(&batch, &keep)?);
        }
        let table = concat_batches(&schema, &batches)?;
        let all = Self {
            runs,
            table,
            repeated,
        };
        Ok((all, unusable))
    }
}

/// The columns of `runs`, then a column for each key in paths, and always `host` and `day`.
fn schema_of(data: &Data) -> SchemaRef {
    let own = arrow_schema(RUNS);
    let keys = data.folders.iter().flat_map(|folder| folder.labels.keys());
    let mut keys: BTreeSet<&str> = keys.map(String::as_str).collect();
    keys.extend(["host", "day"]);
    keys.retain(|key| own.column_with_name(key).is_none());
    let labels = keys
        .into_iter()
        .map(|key| Field::new(key, DataType::Utf8View, true));
    let fields = own.fields().iter().map(|field| field.as_ref().clone());
    Arc::new(Schema::new(fields.chain(labels).collect::<Vec<_>>()))
}

/// The runs of one folder, and files that cannot be read.
fn of_folder(data: &Data, number: usize, schema: &SchemaRef) -> (RecordBatch, Vec<Unusable>) {
    let folder = &data.folders[number];
    let mut unusable = Vec::new();
    let mut batches = Vec::new();
    for path in folder.tables.get("runs").into_iter().flatten() {
        match read(&data.store, path).and_then(|batch| complete(&batch, folder, schema)) {
            Ok(batch) => batches.push(batch),
            Err(error) => unusable.push(Unusable {
                path: path.clone(),
                reason: format!("{error:#}"),
            }),
        }
    }
    let all = concat_batches(schema, &batches);
    (
        all.unwrap_or_else(|_| RecordBatch::new_empty(Arc::clone(schema))),
        unusable,
    )
}

fn read(store: &Store, path: &str) -> Result<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(store.read(path)?)?;
    let schema = Arc::clone(reader.schema());
    let batches = reader.build()?.collect::<Result<Vec<_>, _>>()?;
    Ok(concat_batches(&schema, &batches)?)
}

/// The same rows with all columns of the schema.
fn complete(
    batch: &RecordBatch,
    folder: &super::Folder,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    if batch.column_by_name("run_id").is_none() {
        anyhow::bail!("it lacks the column run_id");
    }
    let rows = batch.num_rows();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for field in schema.fields() {
        let label = folder.labels.get(field.name());
        columns.push(match (batch.column_by_name(field.name()), label) {
            (Some(column), _) => cast(column, field.data_type())?,
            (None, Some(label)) => texts(std::iter::repeat_n(label.clone(), rows)),
            (None, None) => match field.name().as_str() {
                "host" => column_or_null(batch, "hostname", field)?,
                "day" => days(batch),
                _ => new_null_array(field.data_type(), rows),
            },
        });
    }
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

fn texts(values: impl Iterator<Item = String>) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(values))
}

fn column_or_null(batch: &RecordBatch, name: &str, field: &Field) -> Result<ArrayRef> {
    Ok(match batch.column_by_name(name) {
        Some(column) => cast(column, field.data_type())?,
        None => new_null_array(field.data_type(), batch.num_rows()),
    })
}

/// The day on which each run started, in UTC.
fn days(batch: &RecordBatch) -> ArrayRef {
    let started = batch.column_by_name("started_unix_ms");
    let started = started.and_then(|column| cast(column, &DataType::Int64).ok());
    let each = (0..batch.num_rows()).map(|row| {
        let started = started.as_ref()?;
        let ms = started
            .is_valid(row)
            .then(|| started.as_primitive::<Int64Type>().value(row))?;
        Some(date(ms.div_euclid(86_400_000)))
    });
    Arc::new(each.collect::<StringViewArray>())
}

/// The date of a day since 1970, in the Gregorian calendar.
fn date(mut day: i64) -> String {
    let mut year = 1970;
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    while day >= 365 + i64::from(is_leap(year)) {
        day -= 365 + i64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [
        31,
        28 + i64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
    ] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", day + 1)
}

fn of_batch(batch: &RecordBatch, folder: usize) -> Vec<Run> {
    let ids = batch.column(0).as_binary_view();
    let text = |name: &str, row: usize| {
        let column = batch
            .column_by_name(name)
            .map(|column| column.as_string_view());
        let column = column.filter(|column| column.is_valid(row));
        column.map_or(String::new(), |column| column.value(row).to_owned())
    };
    let number = |name: &str, row: usize| {
        let column = batch
            .column_by_name(name)
            .map(|column| column.as_primitive::<Int64Type>());
        let column = column.filter(|column| column.is_valid(row));
        column.map_or(0.0, |column| column.value(row) as f64)
    };
    let runs = (0..batch.num_rows()).map(|row| Run {
        id: Identifier::try_from(ids.value(row)).unwrap_or_default(),
        folder,
        host: text("host", row),
        day: text("day", row),
        role: text("role", row),
        scope: text("scope", row),
        kernel: text("kernel", row),
        cpu: text("cpu", row),
        elapsed_ns: number("elapsed_ns", row),
        cpu_ns: number("cpu_ns", row),
        peak_bytes: number("peak_bytes", row),
    });
    runs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(19_782), "2024-02-29");
        assert_eq!(date(19_783), "2024-03-01");
        assert_eq!(date(20_453), "2025-12-31");
    }
}
