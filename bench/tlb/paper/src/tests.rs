//! The acceptance test of the reproduction, at a scale that debug builds can run.

use crate::experiment::{Case, Results, SMALL, orderings, targets};
use crate::suite::suite;
use pagewise_simulate::tlb::Machine;

#[test]
fn the_papers_numbers_and_orderings_come_out() {
    let machine = Machine::named("3a4000").unwrap();
    let results = Results::simulate(&machine, SMALL);
    for target in targets(&results) {
        assert!(target.holds(), "{target:?}");
    }
    for ordering in orderings(&results) {
        assert!(ordering.holds, "{}", ordering.name);
    }
    let left = results.run(Case::Controlled).pages.huge;
    assert!((8..=12).contains(&left), "{left} huge pages left");
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "simulates a billion accesses: cargo test --release; CI runs the experiment in full"
)]
fn min_cost_is_nowhere_worse_than_the_papers_controller() {
    let machine = Machine::named("3a4000").unwrap();
    for row in suite(&machine, SMALL) {
        assert!(row.loses_nothing(), "{row:?}");
        assert!(row.is_min_cost_no_worse(), "{row:?}");
    }
}
