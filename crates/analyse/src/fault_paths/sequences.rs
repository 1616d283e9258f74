//! The paths of faults as sequences to mine, from the shapes that were collected anyway.

use super::collector::Collector;
use super::layer::Layer;
use crate::mine::{Builder, Database};
use pagewise_model::formats::function_graph::{NameId, Names};

impl Collector {
    /// The functions of each fault in the order in which they were called, interrupts left out:
    /// one sequence a fault.
    #[must_use]
    pub fn sequences(&self, names: &Names) -> Database {
        let mut builder = Builder::new();
        for shape in &self.shapes.all {
            let items = shape
                .tokens
                .iter()
                .map(|token| names.text(NameId(token.name())));
            builder.push_many(items, shape.latency[Layer::Fault as usize].count);
        }
        builder.finish()
    }
}
