//! Pictures and places: the flame graph, the heaviest sites, the map of faults.

mod map;
mod names;

pub(crate) use map::fault_map;
pub(crate) use names::{Frame, Names, culprit};

use pagewise_model::findings::{Cause, FlameNode, Site};
use pagewise_model::stack::StackId;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Smallest node of a flame graph, as a share of the whole: less than a pixel.
const SMALLEST_NODE: f64 = 0.0005;
/// Frames kept of a listed stack, innermost ones first.
const MOST_FRAMES: usize = 64;

/// Weight of one stack, and of each cause in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackWeight {
    /// Sum.
    pub(crate) faults: f64,
    /// Its parts.
    pub(crate) causes: BTreeMap<Cause, f64>,
}

/// Weights by stack.
pub(crate) type Weights = FxHashMap<StackId, StackWeight>;

/// Sums (stack, cause, weight) by stack, scaled so that they add up to `total`: only a part of the
/// faults have a stack, evenly spread.
pub(crate) fn weights(
    parts: impl Iterator<Item = (StackId, Cause, f64)>,
    total: Option<f64>,
) -> Weights {
    let mut weights = Weights::default();
    let mut sum = 0.0;
    for (stack, cause, weight) in parts {
        sum += weight;
        let held = weights.entry(stack).or_default();
        held.faults += weight;
        *held.causes.entry(cause).or_default() += weight;
    }
    if let Some(total) = total.filter(|_| sum > 0.0) {
        for held in weights.values_mut() {
            held.faults *= total / sum;
        }
    }
    weights
}

/// The heaviest stacks by name; stacks with equal names are merged.
pub(crate) fn sites(weights: &Weights, names: &Names<'_>) -> Vec<Site> {
    let mut joined: BTreeMap<Vec<String>, (StackWeight, String)> = BTreeMap::new();
    for (&stack, weight) in weights {
        let frames = names.frames(stack);
        let mut readable: Vec<String> = frames
            .iter()
            .take(MOST_FRAMES)
            .map(|frame| frame.name.clone())
            .collect();
        readable.reverse();
        let (held, _) = joined
            .entry(readable)
            .or_insert_with(|| (StackWeight::default(), culprit(&frames)));
        held.faults += weight.faults;
        for (&cause, part) in &weight.causes {
            *held.causes.entry(cause).or_default() += part;
        }
    }
    let mut sites: Vec<Site> = joined
        .into_iter()
        .map(|(stack, (weight, culprit))| Site {
            stack,
            culprit,
            faults: weight.faults,
            main_cause: main_cause(&weight),
        })
        .collect();
    sites.sort_by(|a, b| b.faults.total_cmp(&a.faults));
    sites.truncate(Site::MOST);
    sites
}

fn main_cause(weight: &StackWeight) -> Cause {
    weight
        .causes
        .iter()
        .max_by(|a, b| a.1.total_cmp(b.1))
        .map_or(Cause::Unknown, |(&cause, _)| cause)
}

/// A flame graph under construction: nodes refer to each other by number, so that recursion is not
/// as deep as a stack.
#[derive(Default)]
struct Tree {
    totals: Vec<f64>,
    frames: Vec<Frame>,
    children: Vec<FxHashMap<Frame, usize>>,
}

impl Tree {
    fn push(&mut self, frame: Frame) -> usize {
        self.totals.push(0.0);
        self.frames.push(frame);
        self.children.push(FxHashMap::default());
        self.totals.len() - 1
    }

    fn child(&mut self, of: usize, frame: Frame) -> usize {
        if let Some(&known) = self.children[of].get(&frame) {
            return known;
        }
        let new = self.push(frame.clone());
        self.children[of].insert(frame, new);
        new
    }

    /// The node with all children that are wide enough. Depth is limited by [`DEEPEST`].
    fn node(&self, at: usize, smallest: f64) -> FlameNode {
        let mut children: Vec<FlameNode> = self.children[at]
            .values()
            .filter(|&&child| self.totals[child] >= smallest)
            .map(|&child| self.node(child, smallest))
            .collect();
        children.sort_by(|a, b| {
            b.total
                .total_cmp(&a.total)
                .then_with(|| a.name.cmp(&b.name))
        });
        FlameNode {
            name: self.frames[at].name.clone(),
            module: self.frames[at].module.clone(),
            total: self.totals[at],
            children,
        }
    }
}

/// Most frames of a stack that are drawn. Each nests the JSON by two levels (node and list of
/// children), and parsers limit the depth: `serde_json` at 128 levels, jq at 256 and below.
const DEEPEST: usize = 56;
/// Innermost frames kept of a deeper stack, because they show where faults arise.
const INNERMOST: usize = 16;

/// A stack's frames from the outermost inwards; in a deep one, a single frame replaces the middle:
/// the same one for all depths, so that the frames below it are still merged.
fn drawn(mut frames: Vec<Frame>) -> Vec<Frame> {
    frames.reverse();
    let outermost = DEEPEST - INNERMOST - 1;
    if frames.len() > DEEPEST {
        let cut = Frame {
            name: "… (frames left out of a deep stack)".to_owned(),
            module: String::new(),
        };
        frames.splice(outermost..frames.len() - INNERMOST, [cut]);
    }
    frames
}

/// The flame graph of all stacks.
pub(crate) fn flame(weights: &Weights, names: &Names<'_>) -> FlameNode {
    let mut tree = Tree::default();
    let root = tree.push(Frame {
        name: "all".to_owned(),
        module: String::new(),
    });
    for (&stack, weight) in weights {
        let mut at = root;
        tree.totals[root] += weight.faults;
        for frame in drawn(names.frames(stack)) {
            at = tree.child(at, frame);
            tree.totals[at] += weight.faults;
        }
    }
    tree.node(root, tree.totals[root] * SMALLEST_NODE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::event::{Callchain, CpuMode};
    use pagewise_model::stack::{FrameKey, StackTable};
    use pagewise_model::symbol::{Name, SymbolTable};

    /// Stacks written innermost first, one letter per function; lower-case letters are libc's. A
    /// function is at twice its letter, and its calls return to the next byte.
    fn table(stacks: &[&str]) -> (StackTable, SymbolTable, Vec<StackId>) {
        let (mut table, mut symbols) = (StackTable::default(), Vec::new());
        let ids = stacks
            .iter()
            .map(|stack| {
                let bytes: Vec<u8> = stack
                    .bytes()
                    .enumerate()
                    .map(|(depth, letter)| 2 * u64::from(letter) + u64::from(depth > 0))
                    .flat_map(u64::to_le_bytes)
                    .collect();
                table.intern(1, Callchain::from_le_bytes(&bytes))
            })
            .collect();
        for letter in stacks.iter().flat_map(|stack| stack.bytes()) {
            let is_libc = letter.is_ascii_lowercase();
            let module = if is_libc { "libc.so.6" } else { "program" };
            let key = FrameKey {
                pid: 1,
                mode: CpuMode::User,
                address: 2 * u64::from(letter),
            };
            let name = Name::Known {
                functions: vec![char::from(letter).to_string()],
                module: module.to_owned(),
            };
            symbols.push((key, name));
        }
        (table, symbols.into_iter().collect(), ids)
    }

    #[test]
    fn the_culprit_is_the_innermost_frame_outside_libc() {
        let (table, symbols, ids) = table(&["mfCBA", "sgCDA"]);
        let names = Names::new(&table, &symbols);
        let parts = [
            (ids[0], Cause::FirstTouch, 1.0),
            (ids[1], Cause::RefaultAfterBrk, 3.0),
        ];
        let sites = sites(&weights(parts.into_iter(), Some(8.0)), &names);
        assert_eq!(sites[0].stack, ["A", "D", "C", "g", "s"]);
        assert_eq!(sites[0].culprit, "C");
        assert_eq!(sites[0].main_cause, Cause::RefaultAfterBrk);
        assert!((sites[0].faults - 6.0).abs() < 1e-9);
    }

    #[test]
    fn a_stack_ten_thousand_deep_is_cut_visibly() {
        let deep = "ZY".repeat(5_000) + "A";
        let (table, symbols, ids) = table(&[&deep, "BA"]);
        let names = Names::new(&table, &symbols);
        let parts = [
            (ids[0], Cause::FirstTouch, 3.0),
            (ids[1], Cause::FirstTouch, 1.0),
        ];
        let root = flame(&weights(parts.into_iter(), None), &names);
        let mut line = Vec::new();
        let mut at = &root;
        while let Some(widest) = at.children.first() {
            line.push(widest.name.as_str());
            assert!((widest.total - if line.len() == 1 { 4.0 } else { 3.0 }).abs() < 1e-9);
            at = widest;
        }
        assert_eq!(line.len(), DEEPEST);
        assert_eq!((line[0], line[DEEPEST - 1]), ("A", "Z"));
        assert!(line[DEEPEST - INNERMOST - 1].starts_with('…'), "{line:?}");
        // As nested inside the findings, two levels further down.
        let written = serde_json::to_string(&[[&root]]).unwrap();
        let read: [[FlameNode; 1]; 1] = serde_json::from_str(&written).unwrap();
        assert_eq!(read[0][0], root);
    }

    #[test]
    fn a_flame_graph_has_each_fault_once_if_visible() {
        let (table, symbols, ids) = table(&["CBA", "DBA", "EA"]);
        let names = Names::new(&table, &symbols);
        let parts = [
            (ids[0], Cause::FirstTouch, 6000.0),
            (ids[1], Cause::FirstTouch, 4000.0),
            (ids[2], Cause::FirstTouch, 1.0),
        ];
        let root = flame(&weights(parts.into_iter(), None), &names);
        assert!((root.total - 10_001.0).abs() < 1e-9);
        let a = &root.children[0];
        assert_eq!((a.name.as_str(), a.children.len()), ("A", 1));
        let b: Vec<&str> = a.children[0]
            .children
            .iter()
            .map(|n| n.name.as_str())
            .collect();
        assert_eq!(b, ["C", "D"]);
    }
}
