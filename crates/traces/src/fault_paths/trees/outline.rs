//! A folded tree as text: `root { a b ×3–15 { c } ( d e ) ×2 }`.

use super::Rows;
use super::fold::Forest;
use pagewise_formats::function_graph::{NameId, Names};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// Calls that an outline shows; the rest is `…`.
const MOST_CALLS: usize = 200;

/// The outline of a tree.
pub(super) struct Outline<'a> {
    forest: &'a Forest,
    rows: &'a FxHashMap<u32, Rows>,
    names: &'a Names,
    calls: usize,
    pub root: String,
    pub text: String,
}

/// The function at the root of a tree.
pub(super) fn name<'a>(forest: &Forest, names: &'a Names, tree: u32) -> &'a str {
    names.text(NameId(forest.name(tree)))
}

impl<'a> Outline<'a> {
    pub fn new(forest: &'a Forest, rows: &'a FxHashMap<u32, Rows>, names: &'a Names) -> Self {
        Self {
            forest,
            rows,
            names,
            calls: 0,
            root: String::new(),
            text: String::new(),
        }
    }

    pub fn tree(mut self, tree: u32) -> Self {
        self.root = name(self.forest, self.names, tree).to_owned();
        self.text.push_str(&self.root);
        self.below(tree);
        self
    }

    /// ` { … }` after a function that calls others.
    fn below(&mut self, tree: u32) {
        let forest = self.forest;
        let calls = forest.below(tree);
        if calls.is_empty() {
            return;
        }
        self.text.push_str(" {");
        let rows = self.rows.get(&tree);
        let row = |at: usize, len: usize| {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            rows?.get(&(at, len))
        };
        // The ends of the open loops, with their repeat counts, innermost last.
        let mut open: Vec<(usize, String)> = Vec::new();
        for (at, &call) in calls.iter().enumerate() {
            if self.calls >= MOST_CALLS {
                self.text.push_str(" …");
                break;
            }
            self.calls += 1;
            self.text.push(' ');
            for len in (2..=calls.len() - at).rev() {
                if let Some(counts) = row(at, len) {
                    self.text.push_str("( ");
                    open.push((at + len, times(counts)));
                }
            }
            self.text.push_str(name(forest, self.names, call));
            if let Some(counts) = row(at, 1) {
                self.text.push_str(&times(counts));
            }
            self.below(call);
            while let Some((_, times)) = open.pop_if(|(end, _)| *end == at + 1) {
                self.text.push_str(" )");
                self.text.push_str(&times);
            }
        }
        for (_, times) in open.drain(..).rev() {
            self.text.push_str(" )");
            self.text.push_str(&times);
        }
        self.text.push_str(" }");
    }
}

/// ` ×3` or ` ×1–15`.
fn times(counts: &std::collections::BTreeMap<u64, u64>) -> String {
    let mut text = String::new();
    if let (Some((least, _)), Some((most, _))) = (counts.first_key_value(), counts.last_key_value())
    {
        // Writing to a string can't fail.
        let _ = match least == most {
            true => write!(text, " ×{least}"),
            false => write!(text, " ×{least}–{most}"),
        };
    }
    text
}
