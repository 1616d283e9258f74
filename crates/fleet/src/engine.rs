//! The tables as DataFusion sees them, and queries on them, here or on a cluster.

use crate::Common;
use crate::cluster::{Choice, Cluster};
use crate::condition::predicate;
use crate::data::{
    Data, Files, Identifier, Run, Runs, Seen, Store, TABLES, Unusable, Usable, arrow_schema,
    checked, in_types_of, listed, without_views,
};
use crate::distributed::{self, Question};
use crate::reading::reading;
use anyhow::{Context, Result, bail};
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::AggregateUDF;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use pagewise_report::exports::parquet::Column;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// The tables of a fleet.
pub struct Engine {
    runtime: Runtime,
    context: SessionContext,
    cluster: Option<Arc<Cluster>>,
    data: Data,
    runs: Runs,
    unusable: BTreeSet<Unusable>,
    /// What the reader saw of the files of each table.
    seen: BTreeMap<&'static str, Arc<Seen>>,
    /// The tables of a query of the user.
    provided: BTreeMap<&'static str, Vec<Usable>>,
    scans: Vec<Scan>,
    threads: usize,
    parts: usize,
    unmeasured: Option<String>,
}

/// Parts into which a cluster divides a query, by default: more than executors of a
/// small cluster have at once, so that none waits for the slowest.
const PARTS: usize = 64;

/// What a query read, from its plan's metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Scan {
    /// The tables.
    pub tables: Vec<String>,
    /// Files that were opened.
    pub files: usize,
    /// Rows that they have.
    pub rows_in_files: usize,
    /// Rows that came out of them: as many if each file was read once.
    pub rows: usize,
    /// Bytes that were read of them.
    pub bytes: usize,
}

impl Engine {
    /// Finds the tables and reads `runs`.
    pub fn open(common: &Common) -> Result<Self> {
        Self::with_runs(common, true)
    }

    /// The same for a query of the user, which may have nothing to do with `runs`: to open one file more for
    /// each host takes as long as some queries.
    pub fn open_for(common: &Common, query: &str) -> Result<Self> {
        let mut engine = Self::with_runs(common, names(query, "runs"))?;
        engine.provide_for(query)?;
        Ok(engine)
    }

    fn with_runs(common: &Common, are_read: bool) -> Result<Self> {
        let cpus = std::thread::available_parallelism().map_or(1, |threads| threads.get());
        let (threads, parts) = match common.engine {
            Choice::Embedded => (common.threads.unwrap_or(cpus), 1),
            Choice::Cluster(_) => (cpus, common.threads.unwrap_or(PARTS)),
        };
        let mut config = SessionConfig::new()
            .with_target_partitions(threads)
            .with_collect_statistics(false)
            .with_information_schema(true);
        // Each file goes to one thread as a whole, and is opened once.
        config.options_mut().optimizer.repartition_file_scans = false;
        config.options_mut().execution.parquet.pushdown_filters = false;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build()?;
        let cluster = match &common.engine {
            Choice::Embedded => None,
            Choice::Cluster(address) => {
                if common.data.starts_with("gs://") {
                    bail!("executors of Ballista read folders and s3://, not gs://");
                }
                let config = config.clone().with_target_partitions(parts);
                let patience = Duration::from_secs(common.patience);
                let cluster = runtime.block_on(Cluster::connect(address, config, patience));
                Some(Arc::new(cluster?))
            }
        };
        let memory = RuntimeEnvBuilder::new().with_memory_limit(common.memory << 20, 1.0);
        let context = SessionContext::new_with_config_rt(config, memory.build_arc()?);
        let store = Store::open(&common.data, runtime.handle().clone())?;
        store.register(&context);
        let data = Data::find(store, &common.data)?;
        let (runs, unusable) = match are_read {
            true => Runs::read(&data)?,
            false => (Runs::unread(&data), Vec::new()),
        };
        if are_read && runs.runs.is_empty() {
            let why = unusable.first().map_or(
                "its tables have none: they are of a version before `runs`, or of another program"
                    .to_owned(),
                |bad| format!("{}: {}", bad.path, bad.reason),
            );
            bail!("{} has no runs ({why})", common.data);
        }
        let table = MemTable::try_new(runs.table.schema(), vec![vec![runs.table.clone()]])?;
        context.register_table("runs", Arc::new(table))?;
        if let Some(cluster) = &cluster {
            let schema = without_views(&runs.table.schema());
            let rows = in_types_of(&runs.table, &schema)?;
            let table = MemTable::try_new(schema, vec![vec![rows]])?;
            cluster.context().register_table("runs", Arc::new(table))?;
        }
        Ok(Self {
            runtime,
            context,
            cluster,
            data,
            runs,
            unusable: unusable.into_iter().collect(),
            seen: BTreeMap::new(),
            provided: BTreeMap::new(),
            scans: Vec::new(),
            threads,
            parts,
            unmeasured: None,
        })
    }

    /// The runs that meet a condition, `key=value` or SQL; all without one.
    pub fn select(&mut self, condition: Option<&str>) -> Result<Vec<Run>> {
        let Some(condition) = condition else {
            return Ok(self.runs.runs.clone());
        };
        let sql = format!(
            "SELECT run_id FROM runs WHERE {}",
            self.predicate(condition)
        );
        let all: BTreeSet<usize> = (0..self.data.folders.len()).collect();
        let tables: Vec<(&str, &BTreeSet<usize>)> = match condition.contains("settings") {
            true => vec![("settings", &all)],
            false => Vec::new(),
        };
        let batches = self
            .query(&sql, &tables)
            .with_context(|| format!("the condition {condition}"))?;
        let mut chosen: HashSet<Identifier> = HashSet::new();
        for batch in &batches {
            let ids = batch.column(0).as_binary_view().iter().flatten();
            chosen.extend(ids.filter_map(|id| Identifier::try_from(id).ok()));
        }
        let runs = self.runs.runs.iter().filter(|run| chosen.contains(&run.id));
        let runs: Vec<Run> = runs.cloned().collect();
        match runs.is_empty() {
            true => bail!(
                "no run meets the condition {condition}; the table runs has: {}",
                self.columns()
            ),
            false => Ok(runs),
        }
    }

    /// `cpu=Xeon, 2.1 GHz` as SQL where that is what a run has; anything else is SQL already.
    fn predicate(&self, condition: &str) -> String {
        let has = |key: &str, value: &str| {
            let column = self.runs.table.column_by_name(key)?;
            let texts = cast(column, &DataType::Utf8View).ok()?;
            Some(
                texts
                    .as_string_view()
                    .iter()
                    .any(|text| text == Some(value)),
            )
        };
        predicate(condition, has)
    }

    fn columns(&self) -> String {
        let schema = self.runs.table.schema();
        let names: Vec<&str> = schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        names.join(", ")
    }

    /// Makes an aggregate known to the next queries that run here.
    pub fn register(&self, function: AggregateUDF) {
        self.context.register_udaf(function);
    }

    /// Whether a cluster answers: it knows no aggregates of ours.
    pub fn is_distributed(&self) -> bool {
        self.cluster.is_some()
    }

    /// Answers a query on `runs` and on the files of these tables in these folders. Files that cannot
    /// be read are left out and remembered.
    pub fn query(
        &mut self,
        sql: &str,
        tables: &[(&str, &BTreeSet<usize>)],
    ) -> Result<Vec<RecordBatch>> {
        self.ask(&Question { sql, rest: None }, tables)
    }

    /// The same where a cluster does the first part of a question.
    pub fn ask(
        &mut self,
        question: &Question<'_>,
        tables: &[(&str, &BTreeSet<usize>)],
    ) -> Result<Vec<RecordBatch>> {
        let mut files: BTreeMap<&'static str, Vec<Usable>> = BTreeMap::new();
        for &(name, folders) in tables {
            let (name, found) = self.usable(name, folders)?;
            self.provide(name, &found)?;
            files.insert(name, found);
        }
        let error = match self.attempt(question, &files)? {
            Ok(batches) => return Ok(batches),
            Err(error) => error,
        };
        // If it is the content of some files, the query does without them.
        let mut provided = mem::take(&mut self.provided);
        let before = self.unusable.len();
        for (name, files) in files.iter_mut().chain(&mut provided) {
            *files = self.readable(name, mem::take(files))?;
        }
        if self.unusable.len() == before {
            return Err(error);
        }
        for (name, files) in files.iter().chain(&provided) {
            self.provide(name, files)?;
        }
        self.provided = provided;
        self.attempt(question, &files)?
    }

    /// The files of a table that are there, and as far as anybody has looked at them, right.
    fn usable(
        &mut self,
        table: &str,
        folders: &BTreeSet<usize>,
    ) -> Result<(&'static str, Vec<Usable>)> {
        let (name, columns) = table_of(table)?;
        let files = folders
            .iter()
            .filter_map(|&folder| self.data.folders.get(folder));
        let files = files.filter_map(|folder| folder.tables.get(name));
        let known_bad = |path: &String| self.unusable.iter().any(|bad| bad.path == *path);
        let files: Vec<String> = files
            .flatten()
            .filter(|path| !known_bad(path))
            .cloned()
            .collect();
        let (good, bad) = match self.reads_here() {
            true => listed(&files),
            false => checked(&self.data.store, &files, columns),
        };
        self.unusable.extend(bad);
        Ok((name, good))
    }

    /// Whether the files are on this machine, and read by no cluster.
    fn reads_here(&self) -> bool {
        matches!(self.data.store, Store::Folder(_)) && self.cluster.is_none()
    }

    /// Those of a table's files that can be read to their end; the others are remembered.
    fn readable(&mut self, table: &str, files: Vec<Usable>) -> Result<Vec<Usable>> {
        let (_, columns) = table_of(table)?;
        let paths: Vec<String> = files.into_iter().map(|file| file.path).collect();
        let (mut good, bad) = checked(&self.data.store, &paths, columns);
        self.unusable.extend(bad);
        good.retain(|file| match readable(&self.data.store, &file.path) {
            Ok(()) => true,
            Err(error) => {
                self.unusable.insert(Unusable {
                    path: file.path.clone(),
                    reason: format!("{error:#}"),
                });
                false
            }
        });
        Ok(good)
    }

    /// The answer, or what was wrong as the files were read; an error if the question is.
    fn attempt(
        &mut self,
        question: &Question<'_>,
        tables: &BTreeMap<&'static str, Vec<Usable>>,
    ) -> Result<Result<Vec<RecordBatch>>> {
        let mut scan = Scan {
            tables: tables.keys().map(|&name| name.to_owned()).collect(),
            rows_in_files: tables.values().flatten().map(|file| file.rows).sum(),
            ..Scan::default()
        };
        let context = &self.context;
        if let Some(cluster) = &self.cluster {
            let answer = distributed::answer(cluster, context, question);
            let (batches, read) = match self.runtime.block_on(answer) {
                Ok(answer) => answer,
                Err(error) => return Ok(Err(error)),
            };
            match read {
                Ok(read) => {
                    (scan.files, scan.rows, scan.bytes) = (read.files, read.rows, read.bytes);
                    self.scans.push(scan);
                }
                Err(error) => self.unmeasured = Some(format!("{error:#}")),
            }
            return Ok(Ok(batches));
        }
        let plan = self.runtime.block_on(async {
            let plan = context.sql_with_options(question.sql, reading()).await?;
            anyhow::Ok(plan.create_physical_plan().await?)
        })?;
        let batches = collect(Arc::clone(&plan), context.task_ctx());
        let batches = match self.runtime.block_on(batches) {
            Ok(batches) => batches,
            Err(error) => return Ok(Err(error.into())),
        };
        let mut opened = BTreeSet::new();
        measure(plan.as_ref(), &mut scan, &mut opened);
        scan.files = opened.len();
        for seen in tables.keys().filter_map(|name| self.seen.get(name)) {
            scan.rows_in_files += seen.rows();
            scan.bytes += seen.bytes();
        }
        self.scans.push(scan);
        Ok(Ok(batches))
    }

    /// Registers a table of these files.
    fn provide(&mut self, name: &'static str, files: &[Usable]) -> Result<()> {
        let (_, columns) = table_of(name)?;
        let table: Arc<dyn TableProvider> = match self.reads_here() && !files.is_empty() {
            true => {
                let seen = Arc::new(Seen::new(files.len()));
                self.seen.insert(name, Arc::clone(&seen));
                let store = &self.data.store;
                Arc::new(Files::read_here(store, files, columns, self.threads, seen)?)
            }
            false => {
                let schema = arrow_schema(columns);
                if let Some(cluster) = &self.cluster {
                    let plain = self.table(files, without_views(&schema), self.parts)?;
                    cluster.context().deregister_table(name)?;
                    cluster.context().register_table(name, plain)?;
                }
                self.table(files, schema, self.threads)?
            }
        };
        self.context.deregister_table(name)?;
        self.context.register_table(name, table)?;
        Ok(())
    }

    fn table(
        &self,
        files: &[Usable],
        schema: SchemaRef,
        parts: usize,
    ) -> Result<Arc<dyn TableProvider>> {
        Ok(match files.is_empty() {
            true => Arc::new(MemTable::try_new(schema, vec![Vec::new()])?),
            false => Arc::new(Files::new(&self.data.store, files, schema, parts)?),
        })
    }

    /// Registers the tables of all hosts that a query of the user names. Who asks for columns gets all tables.
    fn provide_for(&mut self, query: &str) -> Result<()> {
        let all: BTreeSet<usize> = (0..self.data.folders.len()).collect();
        for (name, _) in TABLES
            .iter()
            .filter(|(name, _)| *name != "runs" && names(query, name))
        {
            let (name, files) = self.usable(name, &all)?;
            self.provide(name, &files)?;
            self.provided.insert(name, files);
        }
        Ok(())
    }

    /// Folders whose files of these tables cannot all be used: what they say of their hosts is not known.
    pub fn incomplete(&self, tables: &[&str]) -> BTreeSet<usize> {
        let is_bad = |path: &String| self.unusable.iter().any(|bad| bad.path == *path);
        let folders = self.data.folders.iter().enumerate();
        let folders = folders.filter(|(_, folder)| {
            let files = tables.iter().filter_map(|&table| folder.tables.get(table));
            files.flatten().any(is_bad)
        });
        folders.map(|pair| pair.0).collect()
    }

    /// What the path of a folder says of its host.
    pub fn host_of(&self, folder: usize) -> Option<&str> {
        self.data
            .folders
            .get(folder)?
            .labels
            .get("host")
            .map(String::as_str)
    }

    /// The report beside the tables of a folder.
    pub fn report_in(&self, folder: usize) -> Option<&str> {
        self.data.folders.get(folder)?.report.as_deref()
    }

    /// Starts anew to count what is read.
    pub fn forget_scans(&mut self) {
        self.scans.clear();
    }

    /// Files that were left out so far.
    pub fn unusable(&self) -> Vec<Unusable> {
        self.unusable.iter().cloned().collect()
    }

    /// What was read so far, query by query.
    pub fn scans(&self) -> Vec<Scan> {
        self.scans
            .iter()
            .filter(|scan| scan.files > 0)
            .cloned()
            .collect()
    }

    /// What a reader should know about the data.
    pub fn notes(&self) -> Vec<String> {
        let repeated = self.runs.repeated;
        let note = format!("{repeated} runs are there more than once, and count once.");
        let repeated = (repeated > 0).then_some(note);
        let unmeasured = self.unmeasured.as_ref();
        let unmeasured =
            unmeasured.map(|why| format!("What the cluster read is not known: {why}."));
        repeated.into_iter().chain(unmeasured).collect()
    }
}

/// A table with its columns.
fn table_of(name: &str) -> Result<(&'static str, &'static [Column])> {
    let known = TABLES.iter().find(|(table, _)| *table == name);
    known
        .copied()
        .with_context(|| format!("there is no table {name}"))
}

/// Whether a query of the user may have to do with a table.
fn names(query: &str, table: &str) -> bool {
    let query = query.to_lowercase();
    query.contains("information_schema") || query.contains(table)
}

/// Reads a file to its end.
fn readable(store: &Store, path: &str) -> Result<()> {
    let mut reader = ParquetRecordBatchReaderBuilder::try_new(store.read(path)?)?.build()?;
    match reader.find_map(Result::err) {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// Adds up what the plan's scans report.
fn measure(plan: &dyn ExecutionPlan, scan: &mut Scan, opened: &mut BTreeSet<String>) {
    if let Some(metrics) = plan.metrics().filter(|_| plan.children().is_empty()) {
        scan.rows += metrics.output_rows().unwrap_or(0);
        for metric in metrics
            .iter()
            .filter(|metric| metric.value().name() == "bytes_scanned")
        {
            scan.bytes += metric.value().as_usize();
            let label = metric
                .labels()
                .iter()
                .find(|label| label.name() == "filename");
            if let Some(label) = label {
                opened.insert(label.value().to_owned());
            }
        }
    }
    for child in plan.children() {
        measure(child.as_ref(), scan, opened);
    }
}
