//! Points as rows: CSV, JSON lines, Parquet.

use super::Args;
use crate::standard_output::standard_output;
use anyhow::Context;
use pagewise_model::answer::{Document, Subject};
use pagewise_model::timeline::TimelinePoint;
use pagewise_model::watch::{HEADER, Row};
use pagewise_operate::destination;
use pagewise_operate::watch::Rates;
use pagewise_report::exports::timeline_rows::TimelineRows;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Destinations of rows.
pub struct Rows {
    csv: Option<Box<dyn Write>>,
    json: Option<Box<dyn Write>>,
    parquet: Option<TimelineRows<File>>,
    takes_standard_output: bool,
    /// Name of the CSV file, for messages.
    csv_name: PathBuf,
    rates: Rates,
}

/// Whether a path stands for standard output.
pub fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

impl Rows {
    /// Opens the files given by the options; without a live view and without any file, rows are CSV
    /// on standard output.
    pub fn open(args: &Args, live: bool) -> anyhow::Result<Self> {
        let elsewhere = args.csv().is_some() || args.parquet().is_some() || args.metrics.is_some();
        let nowhere = !elsewhere && !args.json && !live;
        let csv_on_output = nowhere || args.csv().is_some_and(is_standard_output);
        let csv: Option<Box<dyn Write>> = match args.csv() {
            _ if csv_on_output => Some(Box::new(standard_output())),
            Some(path) => Some(Box::new(BufWriter::new(create(path)?))),
            None => None,
        };
        let json: Option<Box<dyn Write>> = match args.json_lines() {
            Some(path) if !is_standard_output(path) => Some(Box::new(create(path)?)),
            _ if args.json => Some(Box::new(standard_output())),
            _ => None,
        };
        let json_on_output = args.json && args.json_lines().is_none_or(is_standard_output);
        let parquet = args
            .parquet()
            .map(|path| TimelineRows::create(create(path)?).with_context(|| cannot_write(path)));
        Ok(Self {
            csv,
            json,
            parquet: parquet.transpose()?,
            takes_standard_output: csv_on_output || json_on_output,
            csv_name: match args.csv() {
                Some(path) if !is_standard_output(path) => path.to_path_buf(),
                _ => PathBuf::from("standard output"),
            },
            rates: Rates::default(),
        })
    }

    /// Whether rows are printed, so that a command's output must be redirected.
    pub fn take_standard_output(&self) -> bool {
        self.takes_standard_output
    }

    /// Writes one point to all destinations.
    pub fn write(&mut self, point: &TimelinePoint, subject: &Subject) -> anyhow::Result<()> {
        let is_first = self.rates.is_empty();
        let row = self.rates.row(point);
        self.write_csv(&row, is_first)
            .with_context(|| cannot_write(&self.csv_name))?;
        if let Some(out) = &mut self.json {
            let document = Document::new(row).about(subject.clone());
            out.write_all(pagewise_report::json::to_string(&document)?.as_bytes())?;
            out.flush()?;
        }
        if let Some(file) = &mut self.parquet {
            file.write(&row).context("cannot write the Parquet file")?;
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

    /// Removes the files again, because there was nothing to watch.
    pub fn abandon(self, args: &Args) {
        drop(self);
        let files = [args.csv(), args.parquet(), args.json_lines()];
        let files = files.into_iter().flatten();
        for path in files.filter(|path| path.is_file()) {
            // An empty file does no harm, and there is another error to report.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Completes the files.
    pub fn finish(mut self) -> anyhow::Result<()> {
        if let Some(out) = &mut self.csv {
            out.flush().with_context(|| cannot_write(&self.csv_name))?;
        }
        if let Some(file) = self.parquet {
            file.finish().context("cannot complete the Parquet file")?;
        }
        Ok(())
    }
}

/// A new file accessible only by its owner, under its final name at once, since rows come while the
/// program runs.
fn create(path: &Path) -> anyhow::Result<File> {
    destination::begin(path)
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
