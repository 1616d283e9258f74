//! Sequences from a trace: the functions that each complete call at the top level made, in
//! order, interrupts left out.

use super::database::{Builder, Database};
use pagewise_model::formats::function_graph::{CallTree, Names, Sink, is_interrupt};
use rustc_hash::FxHashMap;

/// Collects the sequences of a trace's calls.
#[derive(Default)]
pub struct CallSequences {
    counts: FxHashMap<Box<[u32]>, usize>,
    sequences: Vec<(Box<[u32]>, u64)>,
    interrupts: Vec<bool>,
    current: Vec<u32>,
}

impl CallSequences {
    /// The database of all sequences.
    #[must_use]
    pub fn database(&self, names: &Names) -> Database {
        let texts: Vec<&str> = names.iter().map(|(_, text)| text).collect();
        let mut builder = Builder::new();
        for (sequence, times) in &self.sequences {
            let items = sequence.iter().map(|&name| texts[name as usize]);
            builder.push_many(items, *times);
        }
        builder.finish()
    }

    fn flatten(&mut self, tree: &CallTree) {
        self.current.clear();
        let mut at = 0;
        let mut marked = tree.interrupts.iter().peekable();
        while let Some(node) = tree.nodes.get(at) {
            while marked.next_if(|&&mark| (mark as usize) < at).is_some() {}
            let is_marked = marked.peek().is_some_and(|&&mark| mark as usize == at);
            if is_marked || self.interrupts[node.name as usize] {
                at = node.end as usize;
            } else {
                self.current.push(node.name);
                at += 1;
            }
        }
    }
}

impl Sink for CallSequences {
    fn tree(&mut self, tree: &CallTree, names: &Names) {
        let known = self.interrupts.len();
        let new = names.iter().skip(known);
        self.interrupts
            .extend(new.map(|(id, _)| is_interrupt(names.base(id))));
        self.flatten(tree);
        match self.counts.get(self.current.as_slice()) {
            Some(&index) => self.sequences[index].1 += 1,
            None => {
                let stored: Box<[u32]> = self.current.as_slice().into();
                self.counts.insert(stored.clone(), self.sequences.len());
                self.sequences.push((stored, 1));
            }
        }
    }
}
