//! Which files there are, what their paths say, and which of them can be used.

use super::schemas::TABLES;
use super::store::Store;
use anyhow::{Result, bail};
use datafusion::arrow::datatypes::{DataType, Schema};
use pagewise_report::exports::parquet::{Column, Kind};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::thread;

/// Folders with tables.
#[derive(Debug)]
pub struct Data {
    /// Where they are.
    pub store: Store,
    /// All folders that hold tables.
    pub folders: Vec<Folder>,
}

/// A folder with tables.
#[derive(Debug, Default)]
pub struct Folder {
    /// What its path says: `day=2026-11-22`, `host=web-17`.
    pub labels: BTreeMap<String, String>,
    /// The files of each table.
    pub tables: BTreeMap<&'static str, Vec<String>>,
    /// The report of the recording, if somebody put it beside its tables.
    pub report: Option<String>,
}

/// The name of a report beside tables.
const REPORT: &str = "report.html";

/// A file that can be used.
#[derive(Clone, Debug)]
pub struct Usable {
    /// The file.
    pub path: String,
    /// Its bytes.
    pub size: u64,
    /// Its rows; 0 where nobody has looked yet.
    pub rows: usize,
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
    /// Finds all tables in a store, which the user calls `name`.
    pub fn find(store: Store, name: &str) -> Result<Self> {
        let mut folders: BTreeMap<Vec<String>, Folder> = BTreeMap::new();
        let root = labels(&store.root());
        for (parts, file) in store.files()? {
            let table = table_of(&file);
            if table.is_none() && file != REPORT {
                continue;
            }
            let path = store.path(&parts, &file);
            let folder = folders.entry(parts).or_insert_with_key(|parts| Folder {
                labels: root.clone().into_iter().chain(labels(parts)).collect(),
                ..Folder::default()
            });
            match table {
                Some(table) => folder.tables.entry(table).or_default().push(path),
                None => folder.report = Some(path),
            }
        }
        folders.retain(|_, folder| !folder.tables.is_empty());
        if folders.is_empty() {
            bail!(
                "{name} has no tables: write some with pagewise report FILE --export parquet -o \
                 FOLDER/day=$(date -I)/host=$(hostname)"
            );
        }
        let mut folders: Vec<Folder> = folders.into_values().collect();
        let files = folders
            .iter_mut()
            .flat_map(|folder| folder.tables.values_mut());
        files.for_each(|files| files.sort());
        Ok(Self { store, folders })
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

/// What the folders of a path say.
fn labels(parts: &[String]) -> BTreeMap<String, String> {
    parts.iter().filter_map(|part| label(part)).collect()
}

/// Does something with each of some files, many at the same time, and returns the results in their
/// order.
pub fn each<T: Sync, R: Send>(store: &Store, files: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let size = files.len().div_ceil(store.readers()).max(1);
    let work = &work;
    thread::scope(|scope| {
        let started: Vec<_> = files
            .chunks(size)
            .map(|part| scope.spawn(move || part.iter().map(work).collect::<Vec<_>>()))
            .collect();
        let joined = started.into_iter().map(|part| {
            part.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.flatten().collect()
    })
}

/// The files whose end can be read and whose columns are those of the table, in their order, and the
/// others.
pub fn checked(
    store: &Store,
    files: &[String],
    columns: &[Column],
) -> (Vec<Usable>, Vec<Unusable>) {
    let results = each(store, files, |path| check(store, path, columns));
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for (path, result) in files.iter().zip(results) {
        match result {
            Ok(usable) => good.push(usable),
            Err(reason) => bad.push(Unusable {
                path: path.clone(),
                reason,
            }),
        }
    }
    (good, bad)
}

/// The files by their size alone: the engine looks at each when it opens it.
pub fn listed(files: &[String]) -> (Vec<Usable>, Vec<Unusable>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for path in files {
        let reason = match fs::metadata(path) {
            Ok(found) if found.is_file() => {
                good.push(Usable {
                    path: path.clone(),
                    size: found.len(),
                    rows: 0,
                });
                continue;
            }
            Ok(_) => "it is no regular file".to_owned(),
            Err(error) => error.to_string(),
        };
        bad.push(Unusable {
            path: path.clone(),
            reason,
        });
    }
    (good, bad)
}

fn check(store: &Store, path: &str, columns: &[Column]) -> Result<Usable, String> {
    let footer = store.footer(path).map_err(|error| format!("{error:#}"))?;
    if let Some(reason) = lacks(footer.metadata.schema(), columns) {
        return Err(reason);
    }
    let rows = footer.metadata.metadata().file_metadata().num_rows();
    Ok(Usable {
        path: path.to_owned(),
        size: footer.size,
        rows: usize::try_from(rows).unwrap_or(0),
    })
}

/// Why a file is none of the table with these columns, if it is none.
pub fn lacks(schema: &Schema, columns: &[Column]) -> Option<String> {
    if let Some(first) = columns
        .first()
        .filter(|first| schema.column_with_name(first.name).is_none())
    {
        return Some(format!("it lacks the column {}", first.name));
    }
    columns.iter().find_map(|column| {
        let (_, field) = schema.column_with_name(column.name)?;
        let found = field.data_type();
        (!is_of_kind(found, column.kind))
            .then(|| format!("its column {} holds {found}", column.name))
    })
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
