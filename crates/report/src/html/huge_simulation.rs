//! The page about simulated huge pages.

use super::{Error, encode, generator, page};
use pagewise_model::huge_simulation::HugeSimulation;
use serde::Serialize;

/// The data as the page expects them (`web/src/data/hugeSimulation.ts`).
#[derive(Serialize)]
struct HugeSimulationPage<'a> {
    kind: &'static str,
    generator: String,
    simulation: &'a HugeSimulation,
}

/// The page about a simulation; `text` is what a browser without scripts shows. Its size is bounded:
/// timelines have a few hundred points, maps at most 128 rows.
///
/// # Errors
/// Only if the result could not be encoded, which the model's types rule out.
pub fn render_huge_simulation(result: &HugeSimulation, text: &str) -> Result<String, Error> {
    let data = encode(&HugeSimulationPage {
        kind: "huge_simulation",
        generator: generator(),
        simulation: result,
    })?;
    Ok(page(&data, text))
}
