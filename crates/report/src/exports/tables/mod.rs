//! Tables of a recording, for questions over many: one row per run, finding, sample…, the same
//! columns from every host, and identifiers that are equal where the content is (docs/FLEET.md).

mod document;
pub mod identity;
mod page_sizes;
mod paging;
pub mod privacy;
mod samples;
pub mod schema;

use crate::exports::parquet::{Column, ParquetWriter, Value};
use identity::Identifier;
use pagewise_model::answer::{Document, Evidence};
use pagewise_model::balance::Balance;
use pagewise_model::fault_paths::TracedFaults;
use pagewise_model::findings::Run;
use pagewise_model::paged_run::PagedRun;
use pagewise_model::paging::PagingTimeline;
use pagewise_model::profile::Profile;
use pagewise_model::run::RunCost;
use pagewise_model::units::Nanos;
use privacy::Include;
use std::collections::BTreeMap;
use std::io;

/// What was observed for how long, at what cost; absent where the recording does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// `machine`, `run` (a program from start to end), `processes`, or empty.
    pub scope: &'static str,
    /// Unix time in milliseconds when observation began.
    pub started_unix_ms: Option<u64>,
    /// Time that was observed.
    pub elapsed: Option<Nanos>,
    /// Resources used meanwhile.
    pub cost: Option<RunCost>,
    /// CPU time, where only that is known.
    pub cpu: Option<Nanos>,
}

/// Build ids by the short name of the file, as hexadecimal text. A name that stands for two builds
/// has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Builds(BTreeMap<String, Option<String>>);

impl Builds {
    /// Adds a file.
    pub fn add(&mut self, module: &str, build_id: &[u8]) {
        let id = identity::hexadecimal(build_id);
        self.0
            .entry(module.to_owned())
            .and_modify(|known| {
                if known.as_ref() != Some(&id) {
                    *known = None;
                }
            })
            .or_insert_with(|| Some(id.clone()));
    }

    /// The build id of the file with this short name.
    #[must_use]
    pub fn build_id(&self, module: &str) -> Option<&str> {
        self.0.get(module)?.as_deref()
    }
}

/// The tables of one recording, each a Parquet file in memory.
pub struct Tables {
    run_id: Identifier,
    include: Include,
    files: BTreeMap<&'static str, Vec<u8>>,
}

impl Tables {
    /// The tables that every document has: `runs`, `settings`, `losses`, `findings`.
    ///
    /// # Errors
    /// If a table cannot be written, which memory does not cause.
    pub fn from_document<E: Evidence>(
        document: &Document<E>,
        figures: &Figures,
        include: Include,
    ) -> io::Result<Self> {
        let head = document::Head::new(document);
        let mut tables = Self {
            run_id: head.identifier(figures),
            include,
            files: BTreeMap::new(),
        };
        head.write(figures, &mut tables)?;
        Ok(tables)
    }

    /// The identifier of the run, in each of its rows.
    #[must_use]
    pub fn run_id(&self) -> Identifier {
        self.run_id
    }

    /// Adds accounts and page sizes of an observed run.
    ///
    /// # Errors
    /// As [`Self::from_document`].
    pub fn add_run(&mut self, run: &Run) -> io::Result<()> {
        document::write_accounts(run, self)?;
        page_sizes::write_held(run, self)
    }

    /// Adds samples, stacks and frames.
    ///
    /// # Errors
    /// As [`Self::from_document`].
    pub fn add_profile(&mut self, profile: &Profile, builds: &Builds) -> io::Result<()> {
        samples::write(profile, builds, self)
    }

    /// Adds the processes of a paged run.
    ///
    /// # Errors
    /// As [`Self::from_document`].
    pub fn add_paged_run(&mut self, run: &PagedRun) -> io::Result<()> {
        paging::write_processes(run, self)
    }

    /// Adds the course of a paged run.
    ///
    /// # Errors
    /// As [`Self::from_document`].
    pub fn add_paging_timeline(&mut self, timeline: &PagingTimeline) -> io::Result<()> {
        paging::write_course(timeline, self)
    }

    /// Adds page sizes before and after balancing.
    ///
    /// # Errors
    /// As [`Self::from_document`].
    pub fn add_balance(&mut self, balance: &Balance) -> io::Result<()> {
        page_sizes::write_balance(balance, self)
    }

    /// Each table's name with its file.
    #[must_use]
    pub fn into_files(self) -> BTreeMap<&'static str, Vec<u8>> {
        self.files
    }

    fn table(
        &mut self,
        name: &'static str,
        columns: &'static [Column],
        fill: impl FnOnce(&mut Rows<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut rows = Rows {
            run_id: &self.run_id,
            file: ParquetWriter::new(Vec::new(), name, columns)?,
        };
        fill(&mut rows)?;
        let bytes = rows.file.finish()?;
        self.files.insert(name, bytes);
        Ok(())
    }
}

/// A table being filled.
struct Rows<'a> {
    run_id: &'a Identifier,
    file: ParquetWriter<Vec<u8>>,
}

impl Rows<'_> {
    /// Adds a row of this run: its values after `run_id`.
    fn of_run(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        let run_id = [Value::Bytes(self.run_id)];
        let row: Vec<Value<'_>> = run_id.iter().chain(values).copied().collect();
        self.file.write(&row)
    }

    /// Adds a row that belongs to no run.
    fn of_all(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        self.file.write(values)
    }
}

impl Figures {
    /// Those of an observed run.
    #[must_use]
    pub fn of_run(run: &Run) -> Self {
        use pagewise_model::run::Ending;
        let scope = match (run.collection.whole_machine, run.ending) {
            (true, _) => "machine",
            (false, Ending::Running) => "processes",
            (false, _) => "run",
        };
        Self {
            scope,
            started_unix_ms: Some(run.started_unix_ms).filter(|&ms| ms > 0),
            elapsed: Some(run.cost.wall).filter(|time| time.0 > 0),
            // Files of other tools have none.
            cost: Some(run.cost).filter(|cost| cost.cpu().0 > 0),
            cpu: None,
        }
    }

    /// Those of a profile: CPU time from its samples of a clock.
    #[must_use]
    pub fn of_profile(profile: &Profile) -> Self {
        use pagewise_model::profile::Observed;
        let scope = match profile.observed {
            Observed::Machine => "machine",
            Observed::Run(_) => "run",
            Observed::Processes => "processes",
            Observed::Unknown | Observed::Stretch => "",
        };
        Self {
            scope,
            elapsed: profile.has_times.then_some(profile.span),
            cpu: samples::cpu_time(profile),
            ..Self::default()
        }
    }

    /// Those of a paged run.
    #[must_use]
    pub fn of_paged_run(run: &PagedRun) -> Self {
        Self {
            scope: "run",
            elapsed: Some(run.cost.wall),
            cost: Some(run.cost),
            ..Self::default()
        }
    }

    /// Those of a trace.
    #[must_use]
    pub fn of_trace(faults: &TracedFaults) -> Self {
        Self {
            elapsed: faults.duration_ns.map(Nanos),
            ..Self::default()
        }
    }
}
