//! Algorithm 1 of Wei & Wang (2024), as a counted prefix tree.
//!
//! The paper counts the first item of every sequence, projects the rests of the sequences that
//! begin with a frequent item, and recurses: copies of all suffixes, O(Σ L²), and a recursion as
//! deep as the longest sequence. The result is the set of supported prefixes, so one pass that
//! counts each step of each sequence in a tree gives the same in O(Σ L), without recursion. The
//! tests compare it with a literal version of the pseudo-code.

use super::database::{Database, Item};
use super::{Query, extension::Limit};
use rustc_hash::FxHashMap;

/// A prefix of sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixNode {
    /// The prefix without its last item; the root is its own parent.
    pub parent: u32,
    /// The last item; meaningless for the root.
    pub item: Item,
    /// Sequences with this prefix.
    pub support: u64,
    /// Sequences that end here, so that the prefix is the whole sequence.
    pub ends: u64,
}

/// All prefixes of a database's sequences with their counts.
#[derive(Clone, Debug)]
pub struct PrefixTree {
    nodes: Vec<PrefixNode>,
    children: FxHashMap<(u32, Item), u32>,
}

impl Default for PrefixTree {
    fn default() -> Self {
        Self {
            nodes: vec![PrefixNode {
                parent: 0,
                item: 0,
                support: 0,
                ends: 0,
            }],
            children: FxHashMap::default(),
        }
    }
}

impl PrefixTree {
    /// Counts all sequences of a database.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        let mut tree = Self::default();
        for (sequence, weight) in database.sequences() {
            tree.add(sequence, weight);
        }
        tree
    }

    /// Counts one sequence that occurs `weight` times.
    pub fn add(&mut self, sequence: &[Item], weight: u64) {
        let mut at = 0;
        self.nodes[0].support += weight;
        for &item in sequence {
            at = self.child(at, item);
            self.nodes[at as usize].support += weight;
        }
        self.nodes[at as usize].ends += weight;
    }

    fn child(&mut self, parent: u32, item: Item) -> u32 {
        let next = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let child = *self.children.entry((parent, item)).or_insert(next);
        if child == next {
            self.nodes.push(PrefixNode {
                parent,
                item,
                support: 0,
                ends: 0,
            });
        }
        child
    }

    /// All prefixes; the empty one is first, parents come before their children.
    #[must_use]
    pub fn nodes(&self) -> &[PrefixNode] {
        &self.nodes
    }

    /// The nodes with at least this support as (parent, item, node), sorted.
    fn supported(&self, min_support: u64) -> Vec<(u32, Item, u32)> {
        let mut found: Vec<(u32, Item, u32)> = (0..)
            .zip(&self.nodes)
            .skip(1)
            .filter(|(_, node)| node.support >= min_support)
            .map(|(index, node)| (node.parent, node.item, index))
            .collect();
        found.sort_unstable();
        found
    }
}

/// The supported prefixes in item order.
pub(super) fn mine(database: &Database, query: Query, visit: &mut impl FnMut(&[Item], u64)) {
    let tree = PrefixTree::new(database);
    let supported = tree.supported(query.min_support);
    let children = |parent: u32| {
        let start = supported.partition_point(|&(p, _, _)| p < parent);
        let end = supported.partition_point(|&(p, _, _)| p <= parent);
        &supported[start..end]
    };
    let limit = Limit::new(query.max_length);
    let mut pattern: Vec<Item> = Vec::new();
    let mut open = vec![children(0).iter()];
    while let Some(siblings) = open.last_mut() {
        let Some(&(_, item, node)) = siblings.next() else {
            open.pop();
            pattern.pop();
            continue;
        };
        pattern.push(item);
        visit(&pattern, tree.nodes[node as usize].support);
        if limit.allows_longer_than(pattern.len()) {
            open.push(children(node).iter());
        } else {
            pattern.pop();
        }
    }
}
