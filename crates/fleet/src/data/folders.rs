//! Which files there are, what their paths say, and which of them can be used.

use super::schemas::TABLES;
use anyhow::{Context, Result, bail};
use datafusion::arrow::datatypes::DataType;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderMetadata;
use pagewise_report::exports::parquet::{Column, Kind};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;

/// Folders with tables.
#[derive(Debug)]
pub struct Data {
    /// All folders that hold tables.
    pub folders: Vec<Folder>,
}

/// A folder with tables.
#[derive(Debug, Default)]
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    /// What its path says: `day=2026-11-22`, `host=web-17`.
    pub labels: BTreeMap<String, String>,
    /// The files of each table.
    pub tables: BTreeMap<String, Vec<PathBuf>>,
}

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unusable {
    /// The file.
    pub path: String,
    /// Why.
    pub reason: String,
}

impl Data {
    /// Finds all tables below `root`.
    pub fn find(root: &Path) -> Result<Self> {
        let mut data = Self {
            folders: Vec::new(),
        };
        data.walk(root, &labels_of(root))
            .with_context(|| format!("cannot read {}", root.display()))?;
        if data.folders.is_empty() {
            bail!(
                "{} has no tables: write some with pagewise report FILE --export parquet -o \
                 {}/day=$(date -I)/host=$(hostname)",
                root.display(),
                root.display()
            );
        }
        data.folders.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(data)
    }

    fn walk(&mut self, path: &Path, labels: &BTreeMap<String, String>) -> Result<()> {
        let mut found = Folder {
            path: path.to_owned(),
            labels: labels.clone(),
            ..Folder::default()
        };
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if entry.file_type()?.is_dir() {
                let mut below = labels.clone();
                below.extend(label(&name));
                self.walk(&path, &below)?;
            } else if let Some(table) = table_of(&name) {
                found.tables.entry(table.to_owned()).or_default().push(path);
            }
        }
        if !found.tables.is_empty() {
            found.tables.values_mut().for_each(|files| files.sort());
            self.folders.push(found);
        }
        Ok(())
    }
}

/// The table of a file: `samples.parquet`, or `samples-17.parquet` where a host wrote several.
fn table_of(name: &str) -> Option<&'static str> {
    let stem = name.strip_suffix(".parquet")?;
    let stem = stem.split(['-', '.']).next()?;
    TABLES
        .iter()
        .map(|(table, _)| *table)
        .find(|table| *table == stem)
}

fn label(name: &str) -> Option<(String, String)> {
    let (key, value) = name.split_once('=')?;
    let is_word = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_word.then(|| (key.to_ascii_lowercase(), value.to_owned()))
}

/// The labels in the path that the user gave.
fn labels_of(root: &Path) -> BTreeMap<String, String> {
    let parts = root
        .iter()
        .filter_map(|part| label(&part.to_string_lossy()));
    parts.collect()
}

/// The files whose end can be read and whose columns are those of the table, in their order, with their
/// rows, and the others. Reads on all CPUs.
pub fn checked(files: &[PathBuf], columns: &[Column]) -> (Vec<(PathBuf, usize)>, Vec<Unusable>) {
    let threads = thread::available_parallelism().map_or(1, |n| n.get());
    let size = files.len().div_ceil(threads).max(1);
    let results: Vec<Result<usize, String>> = thread::scope(|scope| {
        let parts: Vec<_> = files
            .chunks(size)
            .map(|part| {
                scope.spawn(move || {
                    part.iter()
                        .map(|file| check(file, columns))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let joined = parts
            .into_iter()
            .map(|part| part.join().unwrap_or_default());
        joined.flatten().collect()
    });
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for (file, result) in files.iter().zip(results) {
        match result {
            Ok(rows) => good.push((file.clone(), rows)),
            Err(reason) => bad.push(Unusable {
                path: file.display().to_string(),
                reason,
            }),
        }
    }
    (good, bad)
}

/// The rows of a file that can be used.
fn check(path: &Path, columns: &[Column]) -> Result<usize, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let metadata =
        ArrowReaderMetadata::load(&file, Default::default()).map_err(|error| error.to_string())?;
    let schema = metadata.schema();
    if let Some(first) = columns
        .first()
        .filter(|first| schema.column_with_name(first.name).is_none())
    {
        return Err(format!("it lacks the column {}", first.name));
    }
    for column in columns {
        let Some((_, field)) = schema.column_with_name(column.name) else {
            continue;
        };
        if !is_of_kind(field.data_type(), column.kind) {
            return Err(format!(
                "its column {} holds {}",
                column.name,
                field.data_type()
            ));
        }
    }
    let rows = metadata.metadata().file_metadata().num_rows();
    Ok(usize::try_from(rows).unwrap_or(0))
}

fn is_of_kind(found: &DataType, kind: Kind) -> bool {
    match kind {
        Kind::Integer | Kind::OptionalInteger => found.is_integer(),
        Kind::Real | Kind::OptionalReal => found.is_floating(),
        Kind::Text | Kind::OptionalText => {
            matches!(
                found,
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
            )
        }
        Kind::Bytes => is_bytes(found),
        Kind::Identifiers => match found {
            DataType::List(element) | DataType::LargeList(element) => is_bytes(element.data_type()),
            _ => false,
        },
    }
}

fn is_bytes(found: &DataType) -> bool {
    matches!(
        found,
        DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_and_folders_say_what_is_inside() {
        assert_eq!(table_of("samples.parquet"), Some("samples"));
        assert_eq!(table_of("page_sizes-3.parquet"), Some("page_sizes"));
        assert_eq!(table_of("other.parquet"), None);
        assert_eq!(table_of("samples.parquet.tmp"), None);
        assert_eq!(
            label("host=a=b"),
            Some(("host".to_owned(), "a=b".to_owned()))
        );
        assert_eq!(label("plain"), None);
        assert_eq!(label("x'=1"), None);
    }
}
