//! The paths of faults as sequences to mine, from the collected shapes.

use super::collector::Collector;
use super::layer::Layer;
use crate::mine::{Builder, Database};
use pagewise_formats::function_graph::{NameId, Names};

impl Collector {
    /// The functions of each fault in call order, without interrupts: one sequence per fault.
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
