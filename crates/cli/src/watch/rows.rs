//! Points as rows: CSV, JSON lines, Parquet.

use super::Args;
use super::parquet::ParquetFile;
use crate::destination;
use anyhow::Context;
use pagewise_model::timeline::TimelinePoint;
use pagewise_model::units::Nanos;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Version of docs/schema/watch.json.
pub const WATCH_VERSION: u32 = 1;

/// One row. Counters are cumulative; rates are since the row before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// [`WATCH_VERSION`].
    pub schema_version: u32,
    /// Seconds since watching began.
    pub time_s: f64,
    /// Virtual size in bytes.
    pub vsize_bytes: u64,
    /// Resident set in bytes.
    pub rss_bytes: u64,
    /// Proportional set size in bytes, where it was read.
    pub pss_bytes: Option<u64>,
    /// Swapped out, in bytes.
    pub swap_bytes: u64,
    /// Minor faults so far.
    pub minor_faults: u64,
    /// Major faults so far.
    pub major_faults: u64,
    /// Minor faults a second.
    pub minor_faults_per_s: f64,
    /// Major faults a second.
    pub major_faults_per_s: f64,
    /// User CPU seconds so far.
    pub user_s: f64,
    /// System CPU seconds so far.
    pub system_s: f64,
    /// Processes alive.
    pub processes: u32,
    /// Threads alive.
    pub threads: u32,
}

/// Where rows go.
pub struct Rows {
    csv: Option<Box<dyn Write>>,
    json: Option<Box<dyn Write>>,
    parquet: Option<ParquetFile>,
    takes_standard_output: bool,
    /// Name of the CSV file, for messages.
    csv_name: PathBuf,
    rates: Rates,
}

/// Rates need a stretch of time that the clock ticks of counters can fill: shorter ones would
/// turn a few faults into billions a second.
const SHORTEST_STRETCH: Nanos = Nanos(10_000_000);

/// The points that rates are told from.
#[derive(Default)]
struct Rates {
    /// The newest point, and the newest one that was long enough before it.
    newest: Option<TimelinePoint>,
    base: Option<TimelinePoint>,
}

impl Rates {
    /// The row of `point`, the next in time. Rates are 0 where no point is long enough before.
    fn row(&mut self, point: &TimelinePoint) -> Row {
        let is_before = |before: &&TimelinePoint| point.time - before.time >= SHORTEST_STRETCH;
        let base = [self.newest, self.base];
        let base = base.iter().flatten().find(is_before).copied();
        self.base = base.or(self.base);
        self.newest = Some(*point);
        Row::between(base.as_ref().unwrap_or(point), point)
    }
}

/// Whether a path stands for standard output.
pub fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

impl Rows {
    /// Opens what the options name; without a live view and without any file, rows are CSV on
    /// standard output.
    pub fn open(args: &Args, live: bool) -> anyhow::Result<Self> {
        let nowhere = args.csv.is_none() && args.parquet.is_none() && !args.json && !live;
        let csv_on_output = nowhere || args.csv.as_deref().is_some_and(is_standard_output);
        let csv: Option<Box<dyn Write>> = match &args.csv {
            _ if csv_on_output => Some(Box::new(io::stdout())),
            Some(path) => Some(Box::new(BufWriter::new(create(path)?))),
            None => None,
        };
        let parquet = args
            .parquet
            .as_deref()
            .map(|path| ParquetFile::create(create(path)?).with_context(|| cannot_write(path)));
        Ok(Self {
            csv,
            json: args.json.then(|| Box::new(io::stdout()) as Box<dyn Write>),
            parquet: parquet.transpose()?,
            takes_standard_output: csv_on_output || args.json,
            csv_name: match &args.csv {
                Some(path) if !is_standard_output(path) => path.clone(),
                _ => PathBuf::from("standard output"),
            },
            rates: Rates::default(),
        })
    }

    /// Whether rows are printed, so that a command's output must go elsewhere.
    pub fn take_standard_output(&self) -> bool {
        self.takes_standard_output
    }

    /// Writes one point everywhere.
    pub fn write(&mut self, point: &TimelinePoint) -> anyhow::Result<()> {
        let is_first = self.rates.newest.is_none();
        let row = self.rates.row(point);
        self.write_csv(&row, is_first)
            .with_context(|| cannot_write(&self.csv_name))?;
        if let Some(out) = &mut self.json {
            writeln!(out, "{}", serde_json::to_string(&row)?)?;
            out.flush()?;
        }
        if let Some(file) = &mut self.parquet {
            file.write(&row)?;
        }
        Ok(())
    }

    fn write_csv(&mut self, row: &Row, is_first: bool) -> io::Result<()> {
        let Some(out) = &mut self.csv else {
            return Ok(());
        };
        if is_first {
            writeln!(out, "{HEADER}")?;
        }
        writeln!(out, "{}", row.csv())?;
        if self.takes_standard_output {
            out.flush()?;
        }
        Ok(())
    }

    /// Removes the files again: there was nothing to watch.
    pub fn abandon(self, args: &Args) {
        drop(self);
        let files = [&args.csv, &args.parquet].into_iter().flatten();
        for path in files.filter(|path| path.is_file()) {
            // An empty file that stays does no harm, and the error to tell is another.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Completes the files.
    pub fn finish(mut self) -> anyhow::Result<()> {
        if let Some(out) = &mut self.csv {
            out.flush().with_context(|| cannot_write(&self.csv_name))?;
        }
        if let Some(file) = self.parquet {
            file.finish()?;
        }
        Ok(())
    }
}

/// A new file for its owner alone: rows come while the program runs, so it has its name at once.
fn create(path: &Path) -> anyhow::Result<File> {
    destination::begin(path)
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// Names of the columns, in the order of [`Row::csv`].
const HEADER: &str = "time_s,vsize_bytes,rss_bytes,pss_bytes,swap_bytes,minor_faults,major_faults,\
                      minor_faults_per_s,major_faults_per_s,user_s,system_s,processes,threads";

impl Row {
    /// The row of `point`, with rates since `before`.
    pub fn between(before: &TimelinePoint, point: &TimelinePoint) -> Self {
        let elapsed = point.time - before.time;
        Self {
            schema_version: WATCH_VERSION,
            time_s: point.time.as_secs_f64(),
            vsize_bytes: point.vsize.0,
            rss_bytes: point.rss.0,
            pss_bytes: point.pss.map(|pss| pss.0),
            swap_bytes: point.swap.0,
            minor_faults: point.minor_faults,
            major_faults: point.major_faults,
            minor_faults_per_s: rate(point.minor_faults, before.minor_faults, elapsed),
            major_faults_per_s: rate(point.major_faults, before.major_faults, elapsed),
            user_s: point.user.as_secs_f64(),
            system_s: point.system.as_secs_f64(),
            processes: point.processes,
            threads: point.threads,
        }
    }

    fn csv(&self) -> String {
        let pss = self
            .pss_bytes
            .map(|pss| pss.to_string())
            .unwrap_or_default();
        format!(
            "{:.6},{},{},{pss},{},{},{},{:.1},{:.1},{:.2},{:.2},{},{}",
            self.time_s,
            self.vsize_bytes,
            self.rss_bytes,
            self.swap_bytes,
            self.minor_faults,
            self.major_faults,
            self.minor_faults_per_s,
            self.major_faults_per_s,
            self.user_s,
            self.system_s,
            self.processes,
            self.threads
        )
    }
}

/// Growth a second; 0 at the first point, where no time has passed.
#[allow(
    clippy::cast_precision_loss,
    reason = "a rate needs no more than 53 bits"
)]
fn rate(now: u64, before: u64, elapsed: Nanos) -> f64 {
    match elapsed.0 {
        0 => 0.0,
        _ => now.saturating_sub(before) as f64 / elapsed.as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::units::Bytes;

    fn points() -> [TimelinePoint; 2] {
        let first = TimelinePoint {
            time: Nanos(0),
            minor_faults: 10,
            ..TimelinePoint::default()
        };
        let second = TimelinePoint {
            time: Nanos(500_000_000),
            vsize: Bytes(8192),
            rss: Bytes(4096),
            pss: Some(Bytes(2048)),
            minor_faults: 60,
            user: Nanos(20_000_000),
            processes: 1,
            threads: 3,
            ..TimelinePoint::default()
        };
        [first, second]
    }

    #[test]
    fn files_are_for_their_owner_alone_and_never_another_s() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let mut reader = File::open(&path).unwrap();
        create(&path).unwrap().write_all(b"new").unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(io::read_to_string(&mut reader).unwrap(), "old");
    }

    #[test]
    fn csv_has_a_value_for_each_column() {
        let [first, second] = points();
        let row = Row::between(&first, &second).csv();
        assert_eq!(
            row,
            "0.500000,8192,4096,2048,0,60,0,100.0,0.0,0.02,0.00,1,3"
        );
        assert_eq!(row.split(',').count(), HEADER.split(',').count());
        let without_pss = Row::between(&second, &first).csv();
        assert_eq!(without_pss.split(',').count(), HEADER.split(',').count());
    }

    #[test]
    fn rates_are_told_only_over_a_stretch_that_can_hold_them() {
        let at = |time: u64, minor_faults: u64| TimelinePoint {
            time: Nanos(time),
            minor_faults,
            ..TimelinePoint::default()
        };
        let mut rates = Rates::default();
        let mut rate = |time, faults| rates.row(&at(time, faults)).minor_faults_per_s;
        // A microsecond after the start: 1,900 faults are no rate of 1.9·10⁹.
        assert_eq!((rate(0, 0), rate(1_000, 1_900)), (0.0, 0.0));
        assert!((rate(100_000_000, 11_900) - 100_001.0).abs() < 1e-3);
        // The end, just after a reading: the stretch before counts too.
        assert!((rate(100_001_000, 11_901) - 100_010.0).abs() < 1e-3);
        assert!((rate(200_001_000, 21_901) - 100_000.0).abs() < 1e-3);
    }

    #[test]
    fn json_has_the_columns_of_the_csv() {
        let [first, second] = points();
        let json = serde_json::to_value(Row::between(&first, &second)).unwrap();
        let mut names: Vec<&str> = json
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        names.retain(|name| *name != "schema_version");
        let mut columns: Vec<&str> = HEADER.split(',').collect();
        names.sort_unstable();
        columns.sort_unstable();
        assert_eq!(names, columns);
    }
}
