//! All findings about a run.

use crate::page_sizes;
use crate::plan::{Rules, conclude};
use pagewise_faults::{Attribution, measure};
use pagewise_model::findings::Findings;
use pagewise_model::profile::Profile;
use pagewise_model::recording::{Sidecar, Surroundings};
use pagewise_model::symbol::SymbolTable;

/// All findings about a run: measured, counted and concluded.
#[must_use]
pub fn findings(
    attribution: &Attribution,
    symbols: &SymbolTable,
    sidecar: &Sidecar,
    profile: Option<&Profile>,
    rules: &Rules,
    around: &Surroundings,
) -> Findings {
    let mut measured = measure(attribution, symbols, sidecar, profile);
    let page_sizes = sidecar.page_sizes.as_ref();
    let note = page_sizes.and_then(|seen| page_sizes::note(&measured, seen));
    measured.diagnoses.extend(note);
    conclude(measured, rules, around)
}
