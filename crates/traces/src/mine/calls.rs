//! Sequences from a trace: the functions called within each complete top-level call, in order,
//! without interrupts.
//!
//! Names alone do not distinguish `a{b} c` from `a{b c}`, nor a whole call from the beginning of
//! one. With nesting, calls that make others are written `a{` … `}`, which distinguishes both.

use super::database::{Builder, Database};
use pagewise_formats::function_graph::{CallTree, Names, Sink, is_interrupt};
use rustc_hash::FxHashMap;

/// Collects the sequences of a trace's calls.
#[derive(Default)]
pub struct CallSequences {
    counts: FxHashMap<Box<[u32]>, usize>,
    sequences: Vec<(Box<[u32]>, u64)>,
    interrupts: Vec<bool>,
    current: Vec<u32>,
    has_nesting: bool,
    open: Vec<u32>,
}

/// Set in the name of a call that makes others, if nesting is kept.
const OPEN: u32 = 1 << 31;
/// The end of such a call.
const CLOSE: u32 = u32::MAX;

impl CallSequences {
    /// Sequences that record how calls are nested.
    #[must_use]
    pub fn with_nesting() -> Self {
        Self {
            has_nesting: true,
            ..Self::default()
        }
    }

    /// The database of all sequences.
    #[must_use]
    pub fn database(&self, names: &Names) -> Database {
        let texts: Vec<&str> = names.iter().map(|(_, text)| text).collect();
        let opens: Vec<String> = match self.has_nesting {
            true => texts.iter().map(|text| format!("{text}{{")).collect(),
            false => Vec::new(),
        };
        let item = |&token: &u32| match token {
            CLOSE => "}",
            name if name & OPEN != 0 => &opens[(name & !OPEN) as usize],
            name => texts[name as usize],
        };
        let mut builder = Builder::new();
        for (sequence, times) in &self.sequences {
            builder.push_many(sequence.iter().map(item), *times);
        }
        builder.finish()
    }

    fn flatten(&mut self, tree: &CallTree) {
        self.current.clear();
        self.open.clear();
        let mut at = 0;
        let mut marked = tree.interrupts.iter().peekable();
        while let Some(node) = tree.nodes.get(at) {
            while marked.next_if(|&&mark| (mark as usize) < at).is_some() {}
            let is_marked = marked.peek().is_some_and(|&&mark| mark as usize == at);
            if is_marked || self.interrupts[node.name as usize] {
                at = node.end as usize;
            } else {
                self.call(node.name, at, node.end);
                at += 1;
            }
        }
        self.close(tree.nodes.len());
    }

    fn call(&mut self, name: u32, at: usize, end: u32) {
        let is_leaf = end as usize == at + 1;
        if !self.has_nesting {
            return self.current.push(name);
        }
        self.close(at);
        self.current.push(if is_leaf { name } else { name | OPEN });
        if !is_leaf {
            self.open.push(end);
        }
    }

    /// Ends the calls that end before a node.
    fn close(&mut self, at: usize) {
        while self.open.pop_if(|end| *end as usize <= at).is_some() {
            self.current.push(CLOSE);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mine::{Algorithm, Query, patterns};
    use pagewise_formats::function_graph::read_bytes;

    const TRACE: &str = "\
 0)               |  a() {
 0)   0.100 us    |    b();
 0)   0.500 us    |  }
 0)               |  a() {
 0)               |    c() {
 0)   0.100 us    |      b();
 0)   0.200 us    |    }
 0)   0.100 us    |    b();
 0)   0.500 us    |  }
";

    fn found(mut sequences: CallSequences) -> Vec<String> {
        let summary = read_bytes(TRACE.as_bytes(), &mut sequences);
        let database = sequences.database(&summary.names);
        let query = Query {
            algorithm: Algorithm::Prefix,
            min_support: 1,
            max_length: None,
        };
        let texts = patterns(&database, query).into_iter().map(|pattern| {
            let items = pattern.items.iter().map(|&item| database.name(item));
            format!(
                "{}: {}",
                items.collect::<Vec<_>>().join(" "),
                pattern.support
            )
        });
        texts.collect()
    }

    #[test]
    fn nesting_tells_calls_apart_and_where_they_end() {
        assert_eq!(
            found(CallSequences::default()),
            ["a: 2", "a b: 1", "a c: 1", "a c b: 1", "a c b b: 1"]
        );
        assert_eq!(
            found(CallSequences::with_nesting()),
            [
                "a{: 2",
                "a{ b: 1",
                "a{ b }: 1",
                "a{ c{: 1",
                "a{ c{ b: 1",
                "a{ c{ b }: 1",
                "a{ c{ b } b: 1",
                "a{ c{ b } b }: 1"
            ]
        );
    }
}
