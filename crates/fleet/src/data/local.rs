//! Reads tables of this machine for the engine. Each file is opened once: its end is looked at when the engine asks
//! for it, and a small file is read in one call.

use super::folders::lacks;
use bytes::Bytes;
use datafusion::common::Result as Answer;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::errors::{ParquetError, Result};
use datafusion::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use datafusion::parquet::schema::types::TypePtr;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use pagewise_report::exports::parquet::Column;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of the largest file that is read as a whole.
const SMALL: u64 = 256 << 10;
/// Read first of the end of a larger one: its description is there, hardly ever longer.
const END: u64 = 64 << 10;

/// A file of a table, as the engine passes it on.
#[derive(Debug)]
pub struct Own {
    /// Which of the table's files.
    pub number: usize,
    /// Where it is.
    pub path: PathBuf,
}

/// What was read of the files of a table.
#[derive(Debug)]
pub struct Seen {
    /// Rows of each file that was opened.
    rows: Vec<AtomicUsize>,
    bytes: AtomicUsize,
}

impl Seen {
    /// Nothing yet of so many files.
    pub fn new(files: usize) -> Self {
        Self {
            rows: (0..files).map(|_| AtomicUsize::new(0)).collect(),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Rows of all files that were opened, each once.
    pub fn rows(&self) -> usize {
        self.rows
            .iter()
            .map(|rows| rows.load(Ordering::Relaxed))
            .sum()
    }

    /// Bytes of their columns that were asked for.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// The files of a table.
#[derive(Debug)]
pub struct Local {
    columns: &'static [Column],
    seen: Arc<Seen>,
    /// What the last file had that was right: most are by one writer.
    right: Arc<Mutex<Option<Described>>>,
}

/// The columns of a file, and what it says of their types in Arrow.
type Described = (TypePtr, Option<String>);

impl Local {
    /// Files that should have these columns.
    pub fn new(columns: &'static [Column], seen: Arc<Seen>) -> Self {
        Self {
            columns,
            seen,
            right: Arc::default(),
        }
    }
}

impl ParquetFileReaderFactory for Local {
    fn create_reader(
        &self,
        _: usize,
        file: PartitionedFile,
        _: Option<usize>,
        _: &ExecutionPlanMetricsSet,
    ) -> Answer<Box<dyn AsyncFileReader + Send>> {
        let own = file.extensions.get_arc::<Own>();
        let own = own.ok_or_else(|| ParquetError::General("a file without its path".to_owned()))?;
        Ok(Box::new(Reader {
            own,
            size: file.object_meta.size,
            columns: self.columns,
            seen: Arc::clone(&self.seen),
            right: Arc::clone(&self.right),
            file: None,
            end: (0, Bytes::new()),
        }))
    }
}

struct Reader {
    own: Arc<Own>,
    size: u64,
    columns: &'static [Column],
    seen: Arc<Seen>,
    right: Arc<Mutex<Option<Described>>>,
    file: Option<File>,
    /// What was read of the end, and from where.
    end: (u64, Bytes),
}

impl Reader {
    fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        if range.start > range.end || range.end > self.size {
            // Damaged: what it describes is as large as it likes.
            let reason = format!("it describes bytes beyond its end ({})", self.size);
            return Err(ParquetError::General(reason));
        }
        let (from, end) = &self.end;
        if range.start >= *from && range.end <= from + end.len() as u64 {
            let at = |place: u64| (place - from) as usize;
            return Ok(end.slice(at(range.start)..at(range.end)));
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::open(&self.own.path)?),
        };
        let mut bytes = vec![0; (range.end - range.start) as usize];
        file.read_exact_at(&mut bytes, range.start)?;
        Ok(bytes.into())
    }

    fn describe(&mut self) -> Result<Arc<ParquetMetaData>> {
        let mut wanted = if self.size <= SMALL { self.size } else { END };
        let mut reader = ParquetMetaDataReader::new();
        loop {
            let from = self.size.saturating_sub(wanted);
            self.end = (from, self.read(from..self.size)?);
            match reader.try_parse_sized(&self.end.1, self.size) {
                Err(ParquetError::NeedMoreData(more))
                    if wanted < more as u64 && wanted < self.size =>
                {
                    wanted = more as u64;
                }
                parsed => break parsed?,
            }
        }
        let metadata = reader.finish()?;
        self.check(&metadata)?;
        let rows = usize::try_from(metadata.file_metadata().num_rows()).unwrap_or(0);
        self.seen.rows[self.own.number].store(rows, Ordering::Relaxed);
        Ok(Arc::new(metadata))
    }

    /// Whether the columns are those of the table.
    fn check(&self, metadata: &ParquetMetaData) -> Result<()> {
        let file = metadata.file_metadata();
        let pairs = file.key_value_metadata();
        let arrow = pairs
            .into_iter()
            .flatten()
            .find(|pair| pair.key == "ARROW:schema");
        let arrow = arrow.and_then(|pair| pair.value.clone());
        let found = (file.schema_descr().root_schema_ptr(), arrow);
        let is_known = {
            let right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
            right.as_ref() == Some(&found)
        };
        if is_known {
            return Ok(());
        }
        let schema = parquet_to_arrow_schema(file.schema_descr(), pairs)?;
        if let Some(reason) = lacks(&schema, self.columns) {
            return Err(ParquetError::General(reason));
        }
        *self.right.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        Ok(())
    }
}

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        let bytes = range.end.saturating_sub(range.start) as usize;
        self.seen.bytes.fetch_add(bytes, Ordering::Relaxed);
        ready(self.read(range)).boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>>> {
        ready(self.describe()).boxed()
    }
}
