//! The terminal summary, in the order of the page: verdict, account, findings, fix, proof, evidence
//! in short tables, what is missing. Its first screen is the answer.

pub mod annotated;
mod answer;
pub mod bench_alloc;
pub mod bench_faults;
pub mod busiest;
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
pub mod memory;
pub mod memory_limit;
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
mod sides;
mod tables;
mod tasks;
mod time;
pub mod topic;
pub mod tune;
mod wrap;

pub use page::in_ascii;

use page::Page;
use pagewise_model::findings::Findings;

/// The capabilities of the terminal. The caller decides (`NO_COLOR`, a pipe, the locale).
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
/// (settings) may be longer, since a broken line could not be pasted.
#[must_use]
pub fn render(findings: &Findings, width: usize, style: Style) -> String {
    let mut page = Page::new(width, style);
    answer::verdict(&mut page, findings);
    if findings.is_mostly_samples() {
        samples(&mut page, findings);
    }
    answer::cost(&mut page, findings);
    time::accounts(&mut page, findings);
    answer::why(&mut page, findings);
    answer::fix(&mut page, findings);
    answer::proof(&mut page, findings);
    answer::alternatives(&mut page, findings);
    if let Some(memory) = &findings.memory {
        memory::of_run(&mut page, memory, findings.cost.max_rss);
    }
    tasks::by_task(&mut page, findings);
    tables::causes(&mut page, findings);
    tables::regions(&mut page, findings);
    tables::threads(&mut page, findings);
    tables::sites(&mut page, findings);
    answer::missing(&mut page, findings);
    if !findings.is_mostly_samples() {
        samples(&mut page, findings);
    }
    page.finish()
}

/// Where time went, according to the run's samples.
fn samples(page: &mut Page, findings: &Findings) {
    if let Some(samples) = &findings.profile {
        page.gap();
        profile::also(page, &findings.diagnoses, &findings.verdict);
        page.gap();
        profile::samples(page, samples, findings.host.cpus);
        page.gap();
    }
}
