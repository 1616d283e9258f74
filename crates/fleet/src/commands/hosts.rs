//! Single hosts on a page: what each uses, beside the median of all. A host's name leads there, or to the
//! report that somebody put beside its tables.

use super::findings::Lost;
use super::units::Units;
use crate::Output;
use crate::data::Samples;
use crate::engine::Engine;
use crate::text::{Table, bytes, hours, percent};
use pagewise_report::html::sheets::Cell;
use pagewise_stats::hosts::quantile;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Functions of a host that are shown.
const FUNCTIONS: usize = 12;

/// What is known of each host.
pub struct Hosts<'a> {
    pub units: &'a Units,
    pub samples: &'a Samples,
    pub findings: &'a BTreeMap<String, Lost>,
}

impl Hosts<'_> {
    /// The host's name, which leads to what is known of it.
    pub fn cell(&self, engine: &Engine, output: &Output, host: usize) -> Cell {
        let name = Cell::from(&*self.units.keys[host]);
        let folders = self.units.folders_of[host].iter().rev();
        let report = folders
            .filter_map(|&folder| engine.report_in(folder))
            .next();
        let beside = report.zip(output.page.as_deref());
        match beside.and_then(|(report, page)| relative(Path::new(report), page)) {
            Some(link) => name.leading_to(link),
            None => name.leading_to(format!("#{}", detail_of(host))),
        }
    }

    /// A table about a host.
    pub fn detail(&self, host: usize) -> Table {
        let mut rows = Vec::new();
        let cpu = self.samples.all();
        let mut row = |name: Cell, values: &[f64], told: &dyn Fn(f64) -> String| {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            let cells = [values[host], quantile(&sorted, 0.5)];
            let [here, median] = cells.map(|value| Cell::figure(told(value), value));
            rows.push(vec![name, here, median]);
        };
        row("CPU time per day".into(), &self.units.rates(&cpu), &hours);
        if self.units.peak_bytes[host] > 0.0 {
            row("peak memory".into(), &self.units.peak_bytes, &bytes);
        }
        let share = |weights: &[f64], whole: &[f64]| -> Vec<f64> {
            let pairs = weights.iter().zip(whole);
            pairs
                .map(|(weight, whole)| weight / whole.max(f64::MIN_POSITIVE))
                .collect()
        };
        row(
            "share of the kernel".into(),
            &share(&self.samples.kernel(), &cpu),
            &percent,
        );
        for (id, lost) in self.findings {
            if lost.weights[host] > 0.0 {
                let name = Cell::from(&*lost.title).with_note(id);
                row(name, &share(&lost.weights, &self.units.cpu_ns), &percent);
            }
        }
        for function in self.samples.heaviest_on(host, FUNCTIONS) {
            let name = format!("share of {}", self.samples.functions[function].name);
            row(
                name.into(),
                &share(&self.samples.own(function), &cpu),
                &percent,
            );
        }
        Table {
            detail: Some(detail_of(host)),
            ..Table::new(
                &format!("Host {}", self.units.keys[host]),
                &["figure", "here", "median of all hosts"],
                rows.into_iter()
                    .map(|row: Vec<Cell>| row.into_iter().map(plain).collect())
                    .collect(),
            )
        }
    }
}

/// Figures of different kinds share no scale.
fn plain(cell: Cell) -> Cell {
    Cell {
        value: None,
        ..cell
    }
}

fn detail_of(host: usize) -> String {
    format!("host-{}", host + 1)
}

/// The way from a page to a report; none where they have nothing in common, as with a bucket.
fn relative(report: &Path, page: &Path) -> Option<String> {
    let whole = |path: &Path| -> Option<PathBuf> { std::path::absolute(path).ok() };
    if !report.is_file() {
        return None;
    }
    let (report, page) = (whole(report)?, whole(page)?);
    let from: Vec<Component<'_>> = page.parent()?.components().collect();
    let to: Vec<Component<'_>> = report.components().collect();
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let ups = std::iter::repeat_n("..".to_owned(), from.len() - same);
    let downs = to[same..]
        .iter()
        .map(|part| part.as_os_str().to_string_lossy().into_owned());
    Some(ups.chain(downs).collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_leads_to_a_report_below_or_beside_it() {
        let folder =
            std::env::temp_dir().join(format!("pagewise-fleet-hosts-{}", std::process::id()));
        let host = folder.join("day=1/host=web 1");
        std::fs::create_dir_all(&host).unwrap();
        let report = host.join("report.html");
        std::fs::write(&report, "").unwrap();
        let link = |page: &str| relative(&report, &folder.join(page));
        let (below, beside) = (link("top.html"), link("pages/top.html"));
        let missing = relative(&host.join("absent.html"), &folder.join("top.html"));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(below.as_deref(), Some("day=1/host=web 1/report.html"));
        assert_eq!(beside.as_deref(), Some("../day=1/host=web 1/report.html"));
        assert_eq!(missing, None);
    }
}
