//! The terminal summary, in the order of the page: verdict, account, findings, fix, proof, evidence
//! in short tables, what is missing. Its first screen is the answer.

mod answer;
pub mod bench_alloc;
pub mod bench_faults;
pub mod capture_summary;
pub mod check;
mod columns;
pub mod fault_diff;
pub mod fault_paths;
pub mod gate;
pub mod huge_balance;
pub mod huge_probe;
pub mod huge_simulation;
pub mod huge_undo;
pub mod mined;
mod page;
pub mod paged_run;
pub mod paging_simulation;
pub mod paging_timeline;
pub mod profile;
pub mod profile_diff;
pub mod run_diff;
pub mod run_line;
mod scatter;
mod tables;
mod tasks;
mod time;
pub mod tune;
mod wrap;

pub use wrap::folded;

use page::Page;
use pagewise_model::findings::Findings;
use pagewise_model::loss::Losses;

/// What the terminal can show. The caller decides (`NO_COLOR`, a pipe, the locale).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether colours and weights may be used (SGR sequences).
    pub color: bool,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
}

impl Style {
    /// For pages and files: no colours, all characters.
    pub const PLAIN: Self = Self {
        color: false,
        unicode: true,
    };
}

/// The summary as text of at most `width` columns, clamped to 60–200; only text to be copied
/// (settings) may be longer, since a broken line could not be pasted. Of a recording that shows faults
/// and, by samples, where time went, what it is mostly about comes first; what goes for it as a whole
/// is said once.
#[must_use]
pub fn render(findings: &Findings, width: usize, style: Style) -> String {
    let Some(samples) = &findings.profile else {
        return faults(findings, width, style);
    };
    // Files of other tools tell no CPU times, so their faults alone say little.
    if findings.collection.whole_machine || findings.cost.cpu().0 == 0 {
        let mut rest = findings.clone();
        rest.losses = Losses::default();
        rest.collection.notes.clear();
        let first = profile::render(samples, width, style);
        return format!("{first}\n{}", faults(&rest, width, style));
    }
    let mut rest = samples.clone();
    rest.losses = Losses::default();
    rest.notes.clear();
    rest.own_cost = None;
    let first = faults(findings, width, style);
    format!("{first}\n{}", profile::render_below(&rest, width, style))
}

fn faults(findings: &Findings, width: usize, style: Style) -> String {
    let mut page = Page::new(width, style);
    answer::verdict(&mut page, findings);
    answer::cost(&mut page, findings);
    time::accounts(&mut page, findings);
    answer::why(&mut page, findings);
    answer::fix(&mut page, findings);
    answer::proof(&mut page, findings);
    answer::alternatives(&mut page, findings);
    tasks::by_task(&mut page, findings);
    tables::causes(&mut page, findings);
    tables::regions(&mut page, findings);
    tables::threads(&mut page, findings);
    tables::sites(&mut page, findings);
    answer::missing(&mut page, findings);
    page.finish()
}
