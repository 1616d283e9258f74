//! Call trees with their repeats folded, each stored once.
//!
//! From the leaves up, the calls that a call makes are read as a sequence of folded trees, and
//! consecutive repeats are removed: first single calls (`a a a` → `a`), then loops of two calls (`a
//! b a b` → `a b`), of three and of four, each read from left to right after removal of the shorter
//! repeats. The repeat counts are stored next to the tree, so trees that differ only in them are
//! the same tree. A loop never cuts one that was found before it.

use super::super::shapes::Token;
use rustc_hash::FxHashMap;

/// Calls of the longest loop.
const LONGEST_LOOP: usize = 4;

/// All folded trees so far. A tree's number is larger than those of the trees below it.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Forest {
    /// Name and trees below, by tree.
    keys: Vec<Box<[u32]>>,
    by_key: FxHashMap<Box<[u32]>, u32>,
    /// Trees of one call, by name.
    leaves: Vec<Option<u32>>,
    key: Vec<u32>,
    row: Vec<Call>,
    next: Vec<Call>,
}

/// A stretch of a tree's calls that occurred several times in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in super::super) struct Run {
    /// The position of the first call among those that the tree makes.
    pub at: u32,
    /// Calls.
    pub len: u32,
    pub times: u32,
}

/// The trees of a shape.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Folded {
    /// By node.
    pub trees: Vec<u32>,
    /// The node that called each; the root is its own.
    pub callers: Vec<u32>,
    /// First node after each call and all its callees.
    pub ends: Vec<u32>,
    /// Node and run, in no particular order.
    pub runs: Vec<(u32, Run)>,
}

/// A call in a row.
#[derive(Clone, Copy, Debug)]
struct Call {
    tree: u32,
    /// Whether it is in one loop with the next.
    is_tied: bool,
}

impl Forest {
    /// The number of trees.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// The function at the root of a tree.
    pub fn name(&self, tree: u32) -> u32 {
        self.keys[tree as usize][0]
    }

    /// The trees that a tree calls, without repeats.
    pub fn below(&self, tree: u32) -> &[u32] {
        &self.keys[tree as usize][1..]
    }

    /// Folds the calls of a shape.
    pub fn fold(&mut self, tokens: &[Token]) -> Folded {
        let mut folded = Folded {
            trees: vec![0; tokens.len()],
            callers: vec![0; tokens.len()],
            ends: ends(tokens),
            runs: Vec::new(),
        };
        for node in (0..tokens.len()).rev() {
            let name = tokens[node].name();
            let end = folded.ends[node] as usize;
            folded.trees[node] = match end == node + 1 {
                true => self.leaf(name),
                false => self.caller(name, node, end, &mut folded),
            };
        }
        folded
    }

    fn leaf(&mut self, name: u32) -> u32 {
        let place = name as usize;
        if place >= self.leaves.len() {
            self.leaves.resize(place + 1, None);
        }
        match self.leaves[place] {
            Some(tree) => tree,
            None => {
                let tree = self.tree(&[name]);
                self.leaves[place] = Some(tree);
                tree
            }
        }
    }

    fn caller(&mut self, name: u32, node: usize, end: usize, folded: &mut Folded) -> u32 {
        let (mut row, mut next) = (
            std::mem::take(&mut self.row),
            std::mem::take(&mut self.next),
        );
        row.clear();
        let here = u32::try_from(node).unwrap_or(u32::MAX);
        let mut at = node + 1;
        while at < end {
            folded.callers[at] = here;
            row.push(Call {
                tree: folded.trees[at],
                is_tied: false,
            });
            at = folded.ends[at] as usize;
        }
        let first = folded.runs.len();
        for len in 1..=LONGEST_LOOP {
            if row.len() >= 2 * len {
                fold_loops(&row, &mut next, len, here, first, &mut folded.runs);
                std::mem::swap(&mut row, &mut next);
            }
        }
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        key.push(name);
        key.extend(row.iter().map(|call| call.tree));
        let tree = self.tree(&key);
        (self.row, self.next, self.key) = (row, next, key);
        tree
    }

    fn tree(&mut self, key: &[u32]) -> u32 {
        if let Some(&tree) = self.by_key.get(key) {
            return tree;
        }
        let tree = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        self.keys.push(key.into());
        self.by_key.insert(key.into(), tree);
        tree
    }
}

/// Copies a row without the repeats of loops of `len` calls, and records those. Runs of the same
/// row from `first` on move to the new positions of their calls.
fn fold_loops(
    row: &[Call],
    out: &mut Vec<Call>,
    len: usize,
    node: u32,
    first: usize,
    runs: &mut Vec<(u32, Run)>,
) {
    out.clear();
    let mut places: Vec<u32> = Vec::with_capacity(row.len());
    let known = runs.len();
    let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let mut at = 0;
    while at < row.len() {
        let turns = turns(row, at, len);
        let begin = out.len();
        if turns == 1 {
            places.push(place(begin));
            out.push(row[at]);
            at += 1;
            continue;
        }
        out.extend_from_slice(&row[at..at + len]);
        for turn in 0..turns {
            for (call, kept) in out[begin..].iter_mut().enumerate() {
                places.push(place(begin + call));
                kept.is_tied |= row[at + turn * len + call].is_tied;
            }
        }
        for kept in &mut out[begin..begin + len - 1] {
            kept.is_tied = true;
        }
        let run = Run {
            at: place(begin),
            len: place(len),
            times: place(turns),
        };
        runs.push((node, run));
        at += turns * len;
    }
    for (_, run) in &mut runs[first..known] {
        run.at = places[run.at as usize];
    }
}

/// How often the `len` calls from `at` on occur in a row.
fn turns(row: &[Call], at: usize, len: usize) -> usize {
    let cuts_a_loop = at > 0 && row[at - 1].is_tied;
    let is_whole = |turn: &[Call]| turn.len() == len && !turn[len - 1].is_tied;
    let one = &row[at..row.len().min(at + len)];
    if cuts_a_loop || !is_whole(one) {
        return 1;
    }
    let same = |turn: &&[Call]| {
        let mut pairs = turn.iter().zip(one);
        is_whole(turn) && pairs.all(|(a, b)| a.tree == b.tree)
    };
    row[at..].chunks(len).take_while(same).count()
}

/// The first node after each call and all its callees.
fn ends(tokens: &[Token]) -> Vec<u32> {
    let len = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
    let mut ends = vec![len; tokens.len()];
    let mut open: Vec<usize> = Vec::new();
    for (node, token) in (0..).zip(tokens) {
        while let Some(above) = open.pop_if(|above| tokens[*above].depth() >= token.depth()) {
            ends[above] = node;
        }
        open.push(node as usize);
    }
    ends
}
