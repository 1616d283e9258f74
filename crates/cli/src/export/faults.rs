//! Exports of the faults of a function_graph trace.

use super::{FaultExport, Written, inside, output, place, required, tables};
use crate::fault_paths::Trace;
use crate::open::{Opened, open};
use anyhow::{Context, Result, bail};
use pagewise_formats::function_graph::{CallTree, Names, Sink};
use pagewise_model::fault_paths::Source;
use pagewise_operate::destination::Destination;
use pagewise_report::border::{Border, Content};
use pagewise_report::exports::fault_slices::slices;
use pagewise_report::exports::fault_tables::{
    FaultTable, write_functions, write_histograms, write_paths,
};
use pagewise_report::exports::folded::{self, Times};
use pagewise_report::exports::perfetto::PerfettoWriter;
use pagewise_report::exports::tables::{Figures, Tables};
use pagewise_traces::fault_paths::Rows;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

/// Folded stacks of corrected own time, or of raw time if it could not be corrected.
pub fn folded(export: &FaultExport<'_>) -> Result<Written> {
    let (times, word) = match export.findings.calibration.source {
        Source::Nothing | Source::Withdrawn => (Times::Raw, "as traced"),
        _ => (Times::Corrected, "without the tracer's cost"),
    };
    let mut out = output(export.output)?;
    let mut text = Border::new(&mut out, Content::Text);
    folded::write(&export.findings.call_map, times, &mut text)?;
    text.flush()?;
    drop(text);
    out.finish()?;
    let place = place(export.output);
    Ok(Written(format!(
        "{place}: own times in nanoseconds, {word}"
    )))
}

/// A Perfetto trace; if there are more calls than the limit, only every nth top-level call.
pub fn perfetto(export: &FaultExport<'_>) -> Result<Written> {
    let path = required(export.output, "a Perfetto trace")?;
    let map = &export.findings.call_map;
    let calls: u64 = map.nodes.iter().map(|node| node.calls).sum();
    let every = calls.div_ceil(export.limit.max(1)).max(1);
    let mut sink = PerfettoSink {
        out: PerfettoWriter::new(Destination::create(path)?),
        every,
        met: 0,
        written: 0,
        ends: HashMap::new(),
        error: None,
    };
    again(export.trace)?.read(&mut sink)?;
    if let Some(error) = sink.error {
        return Err(error).with_context(|| format!("cannot write {}", path.display()));
    }
    let written = sink.out.finish();
    written
        .with_context(|| format!("cannot write {}", path.display()))?
        .finish()?;
    let sampled = match every {
        1 => String::new(),
        _ => format!(", one in {every} (--export-limit raises that)"),
    };
    Ok(Written(format!(
        "{}: {} top-level calls{sampled}; open it at https://ui.perfetto.dev",
        path.display(),
        sink.written
    )))
}

struct PerfettoSink<W> {
    out: PerfettoWriter<W>,
    every: u64,
    met: u64,
    written: u64,
    /// End of each task's last call: calls without times, or with times in microseconds, must not
    /// overlap.
    ends: HashMap<u32, u64>,
    error: Option<io::Error>,
}

impl<W: Write> Sink for PerfettoSink<W> {
    fn tree(&mut self, tree: &CallTree, names: &Names) {
        self.met += 1;
        if self.error.is_some() || !(self.met - 1).is_multiple_of(self.every) {
            return;
        }
        let slices = slices(tree, names);
        let Some(root) = slices.first() else { return };
        let task = tree.pid.unwrap_or(0);
        let free = self.ends.entry(task).or_default();
        let start = tree.start.unwrap_or(*free).max(*free);
        *free = start + root.duration_ns;
        self.written += 1;
        self.error = self.out.write(task, start, &slices).err();
    }
}

/// A folder of Parquet tables.
pub fn parquet(export: &FaultExport<'_>) -> Result<Written> {
    let folder = required(export.output, "a folder of Parquet tables")?;
    let findings = export.findings;
    let common = Tables::from_document(findings, &Figures::of_trace(findings), export.include)?;
    let run_id = common.run_id();
    let Written(common) = tables::write(common, folder)?;
    let file = |name| Destination::create(&inside(folder, name));
    let mut table = FaultTable::new(file("faults.parquet")?, run_id)?;
    let mut error = None;
    let mut faults = 0_u64;
    let mut rows = Rows::new(findings.calibration, |row| {
        faults += 1;
        if error.is_none() {
            error = table.write(&row).err();
        }
    });
    let summary = again(export.trace)?.read(&mut rows)?;
    let paths = rows.paths(&summary.names);
    let cannot = || format!("cannot write {}", folder.display());
    if let Some(error) = error {
        return Err(error).with_context(cannot);
    }
    table.finish().with_context(cannot)?.finish()?;
    let paths = write_paths(&paths, &run_id, file("paths.parquet")?);
    paths.with_context(cannot)?.finish()?;
    let functions = write_functions(findings, &run_id, file("functions.parquet")?);
    functions.with_context(cannot)?.finish()?;
    let histograms = write_histograms(findings, &run_id, file("histograms.parquet")?);
    histograms.with_context(cannot)?.finish()?;
    Ok(Written(format!(
        "{common}, faults ({faults} rows), paths, functions, histograms"
    )))
}

/// Opens the trace again, now that its findings are known.
fn again(path: &Path) -> Result<Trace> {
    if path == Path::new("-") {
        bail!("this export reads the trace twice: give a file, not standard input");
    }
    match open(path)? {
        Opened::Trace(trace) => Ok(trace),
        _ => bail!("{} changed while it was read", path.display()),
    }
}
