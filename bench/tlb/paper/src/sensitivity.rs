//! What happens to the paper's numbers under other assumptions about the machine.

use crate::experiment::{Case, Results, Target, orderings, targets};
use pagewise_simulate::page_sizes::Scale;
use pagewise_simulate::tlb::{Machine, PageSize, Replacement};

/// The machine under another assumption.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The assumption.
    pub name: String,
    /// The paper's numbers.
    pub targets: Vec<Target>,
    /// Orderings that fail.
    pub failing: Vec<&'static str>,
    /// Huge pages that the paper's controller leaves.
    pub left: u64,
}

/// Runs the experiment on the machine as it is and under other assumptions, costs not refitted.
pub fn sensitivity(machine: &Machine, scale: Scale) -> Vec<Variant> {
    let mut variants = vec![("as calibrated".to_owned(), machine.clone())];
    for (name, replacement) in [
        ("random replacement", Replacement::Random),
        ("tree-PLRU", Replacement::TreePlru),
        ("FIFO", Replacement::Fifo),
    ] {
        let mut other = machine.clone();
        for array in other.levels.iter_mut().flat_map(|level| &mut level.arrays) {
            array.replacement = replacement;
        }
        variants.push((name.to_owned(), other));
    }
    let mut single = machine.clone();
    for array in single.levels.iter_mut().flat_map(|level| &mut level.arrays) {
        array.pages_per_entry = 1;
    }
    variants.push(("one small page an entry".to_owned(), single));
    let mut one_cost = machine.clone();
    one_cost.walk.huge_ns = one_cost.walk.small_ns;
    variants.push(("one cost for both sizes".to_owned(), one_cost));
    let mut through = machine.clone();
    through.walk.levels = 3;
    through.walk.tables_need_second_stage = true;
    variants.push(("2-D walk: guest tables need entries".to_owned(), through));
    let mut larger = machine.clone();
    for level in &mut larger.levels {
        for array in &mut level.arrays {
            if array.holds(PageSize::Huge) && array.entries == 64 {
                (array.entries, array.ways) = (128, 128);
            }
        }
    }
    variants.push(("a VTLB of 128 entries".to_owned(), larger));
    variants
        .into_iter()
        .map(|(name, machine)| {
            let results = Results::simulate(&machine, scale);
            let orderings = orderings(&results);
            Variant {
                name,
                targets: targets(&results),
                failing: orderings
                    .into_iter()
                    .filter(|ordering| !ordering.holds)
                    .map(|ordering| ordering.name)
                    .collect(),
                left: results.run(Case::Controlled).pages.huge,
            }
        })
        .collect()
}
