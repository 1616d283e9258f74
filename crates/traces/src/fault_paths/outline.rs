//! Shapes in words.

use super::shapes::{Token, end_of};
use pagewise_formats::function_graph::{NameId, Names};
use std::collections::BTreeSet;

/// Levels of an outline below the root.
const OUTLINE_DEPTH: u16 = 3;

/// `root { a b×3 { c } }`: adjacent equal calls are merged, with every callee that any of them has,
/// each once, in order of appearance.
pub(super) fn outline(tokens: &[Token], names: &Names) -> String {
    let mut text = String::new();
    write_outline(tokens, names, &mut text);
    text
}

fn write_outline(tokens: &[Token], names: &Names, text: &mut String) {
    let mut at = 0;
    while at < tokens.len() {
        let (name, depth) = (tokens[at].name(), tokens[at].depth());
        let mut end = end_of(tokens, at);
        let mut inside = tokens[at + 1..end].to_vec();
        while tokens
            .get(end)
            .is_some_and(|t| t.name() == name && t.depth() == depth)
        {
            let next = end_of(tokens, end);
            add_new(&mut inside, &tokens[end + 1..next]);
            end = next;
        }
        if !text.is_empty() && !text.ends_with("{ ") {
            text.push(' ');
        }
        text.push_str(names.text(NameId(name)));
        if depth < OUTLINE_DEPTH && !inside.is_empty() {
            text.push_str(" { ");
            write_outline(&inside, names, text);
            text.push_str(" }");
        }
        at = end;
    }
}

/// Adds the direct calls of a repeat that are new.
fn add_new(inside: &mut Vec<Token>, more: &[Token]) {
    let known: BTreeSet<u64> = inside.iter().map(|token| token.0).collect();
    let is_new = |token: &&Token| !known.contains(&token.0);
    let all_new: Vec<Token> = more.iter().filter(is_new).copied().collect();
    inside.extend(all_new);
}

/// Each name without the suffix that the build added, by id.
pub(super) fn base_names(names: &Names) -> Vec<&str> {
    names.iter().map(|(id, _)| names.base(id)).collect()
}
