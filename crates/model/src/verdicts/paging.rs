//! What a memory budget cost a program.

use crate::answer::{Evidence, Kind};
use crate::paged_run::PagedRun;
use crate::paging::PagingTimeline;
use crate::paging_simulation::PagingSimulation;
use crate::quantity::{count, counted};

impl Evidence for PagedRun {
    const KIND: Kind = Kind::PagedRun;

    fn verdict(&self) -> String {
        run(self)
    }
}

/// How the program ended.
fn run(found: &PagedRun) -> String {
    let words = found.ending.words();
    format!("The program {words} after {}.", found.cost.wall)
}

impl Evidence for PagingTimeline {
    const KIND: Kind = Kind::PagingTimeline;

    fn verdict(&self) -> String {
        timeline(self)
    }
}

/// How often the program waited for pages, and what moved.
fn timeline(found: &PagingTimeline) -> String {
    let Some(last) = found.points.last() else {
        return "The timeline has no points.".to_owned();
    };
    format!(
        "{} for the store in {}; {} read ({} of them ahead), {} written, {} evicted.",
        counted(last.refaults, "wait"),
        last.time,
        counted(last.pages_read, "page"),
        count(last.pages_read_ahead),
        count(last.pages_written),
        count(last.pages_evicted)
    )
}

impl Evidence for PagingSimulation {
    const KIND: Kind = Kind::PagingSimulation;

    fn verdict(&self) -> String {
        simulation(self)
    }
}

/// The policy that waits least.
fn simulation(found: &PagingSimulation) -> String {
    let ranked = found.policies.iter().filter(|row| !row.knew_the_run);
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_by_key(|row| (row.refaults, row.pages_read));
    let Some((best, others)) = ranked.split_first() else {
        return String::new();
    };
    let waits = counted(best.refaults, "wait");
    match others.first() {
        None => format!("{} would have {waits} for the store.", best.policy),
        Some(next) => format!(
            "{} waits least: {waits} for the store, against {} with {}.",
            best.policy,
            count(next.refaults),
            next.policy
        ),
    }
}
