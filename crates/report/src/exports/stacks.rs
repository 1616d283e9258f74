//! Stacks of one event with the names that flame graph tools print, merged and sorted.
//!
//! Names follow `stackcollapse-perf.pl` (FlameGraph 1.0) and `inferno-collapse-perf` (0.12), so
//! that results can be compared: the thread's name is the outermost frame, arguments are left out,
//! code without a symbol gets its file's name. Where the two differ, names follow inferno.
//! docs/EXPORTS.md lists the exceptions and their reasons.

use crate::visible::visible;
use pagewise_model::profile::{Frame, FrameId, FrameKind, NodeId, Profile, ProfileThread};
use pagewise_model::symbol::Unnamed;
use rustc_hash::FxHashMap;

/// Number of a node; 0 is the root of all stacks.
pub type NodeNumber = usize;
/// A number that stands for no node.
const NOWHERE: NodeNumber = usize::MAX;

/// Stacks of one profile, or of two for comparison.
#[derive(Default)]
pub struct Stacks {
    names: Vec<Name>,
    numbers: FxHashMap<String, u32>,
    nodes: Vec<Node>,
    children: FxHashMap<(NodeNumber, u32), NodeNumber>,
}

struct Name {
    text: String,
    kind: FrameKind,
}

struct Node {
    parent: NodeNumber,
    name: u32,
    own: [u64; 2],
}

/// The function or thread that a place in [`Stacks`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The function, or the thread.
    pub name: &'a str,
    /// The kind of code.
    pub kind: FrameKind,
}

impl Stacks {
    /// The stacks of one event of a profile.
    #[must_use]
    pub fn new(profile: &Profile, event: u16) -> Self {
        let mut stacks = Self::default();
        stacks.add(profile, event, 0);
        stacks
    }

    /// The same for two profiles, as the first and the second weight of each node.
    #[must_use]
    pub fn of_both(before: (&Profile, u16), after: (&Profile, u16)) -> Self {
        let mut stacks = Self::default();
        stacks.add(before.0, before.1, 0);
        stacks.add(after.0, after.1, 1);
        stacks
    }

    fn add(&mut self, profile: &Profile, event: u16, side: usize) {
        if self.nodes.is_empty() {
            self.nodes.push(Node {
                parent: 0,
                name: u32::MAX,
                own: [0; 2],
            });
        }
        let threads = profile.threads.iter().map(|thread| {
            let name = thread_name(thread)?;
            Some(self.name(name, FrameKind::Task))
        });
        let threads: Vec<Option<u32>> = threads.collect();
        let mut names = FrameNames::default();
        let mut way: Vec<NodeId> = Vec::new();
        // The root below which each stack was last placed, and the node it has there.
        let mut places: Vec<(NodeNumber, NodeNumber)> = vec![(NOWHERE, 0); profile.stacks.len()];
        for ((thread, stack), weight) in weights(profile, event, &threads) {
            let root = thread.map_or(0, |thread| self.child(0, thread));
            let is_java = thread.is_some_and(|of| self.names[of as usize].text.starts_with("java"));
            let mut at = stack;
            while at != NodeId::ROOT && places[at.0 as usize].0 != root {
                way.push(at);
                at = profile.stacks.parent(at);
            }
            let mut node = match at {
                NodeId::ROOT => root,
                met => places[met.0 as usize].1,
            };
            for at in way.drain(..).rev() {
                let frame = profile.stacks.frame(at);
                for &name in frame.map_or(&[][..], |of| {
                    names.names(self, &profile.frames, of, is_java)
                }) {
                    node = self.child(node, name);
                }
                places[at.0 as usize] = (root, node);
            }
            if node == 0 {
                let nameless = self.name("[no stack]".to_owned(), FrameKind::User);
                node = self.child(0, nameless);
            }
            let own = &mut self.nodes[node].own[side];
            *own = own.saturating_add(weight);
        }
    }

    fn name(&mut self, text: String, kind: FrameKind) -> u32 {
        if let Some(&known) = self.numbers.get(&text) {
            return known;
        }
        let new = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.numbers.insert(text.clone(), new);
        self.names.push(Name { text, kind });
        new
    }

    fn child(&mut self, parent: NodeNumber, name: u32) -> NodeNumber {
        let next = self.nodes.len();
        let node = *self.children.entry((parent, name)).or_insert(next);
        if node == next {
            self.nodes.push(Node {
                parent,
                name,
                own: [0; 2],
            });
        }
        node
    }

    /// How many nodes there are, the root included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no stack.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.len() <= 1
    }

    /// The function or thread of a node; `None` for the root.
    #[must_use]
    pub fn place(&self, node: NodeNumber) -> Option<Place<'_>> {
        let name = self.names.get(self.nodes.get(node)?.name as usize)?;
        Some(Place {
            name: &name.text,
            kind: name.kind,
        })
    }

    /// The weights of stacks that end at a node, in the first and the second profile.
    #[must_use]
    pub fn own(&self, node: NodeNumber) -> [u64; 2] {
        self.nodes.get(node).map_or([0; 2], |node| node.own)
    }

    /// The weights of all stacks that pass through each node.
    #[must_use]
    pub fn totals(&self) -> Vec<[u64; 2]> {
        let mut totals: Vec<[u64; 2]> = self.nodes.iter().map(|node| node.own).collect();
        for at in (1..totals.len()).rev() {
            let own = totals[at];
            let parent = &mut totals[self.nodes[at].parent];
            for (sum, own) in parent.iter_mut().zip(own) {
                *sum = sum.saturating_add(own);
            }
        }
        totals
    }

    /// Each node's children, by name.
    #[must_use]
    pub fn children(&self) -> Vec<Vec<NodeNumber>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            children[node.parent].push(at);
        }
        for of_one in &mut children {
            of_one.sort_unstable_by_key(|&node| self.place(node).map(|place| place.name));
        }
        children
    }
}

/// Sums of weights by thread name and stack, grouped by name.
pub(super) fn weights(
    profile: &Profile,
    event: u16,
    threads: &[Option<u32>],
) -> Vec<((Option<u32>, NodeId), u64)> {
    // Most stacks belong to threads of one name: the sums of other names are kept separately.
    let mut first: Vec<(Option<u32>, u64)> = vec![(None, 0); profile.stacks.len()];
    let mut others: FxHashMap<(Option<u32>, NodeId), u64> = FxHashMap::default();
    let samples = &profile.samples;
    let owned = samples.threads.iter().zip(samples.stacks.iter());
    let owned = owned.zip(samples.weights.iter());
    for (of, ((thread, stack), weight)) in samples.events.iter().zip(owned) {
        if of != event {
            continue;
        }
        let thread = threads.get(thread as usize).copied().flatten();
        let (owner, sum) = &mut first[stack.0 as usize];
        if *sum == 0 {
            *owner = thread;
        }
        let sum = match *owner == thread {
            true => sum,
            false => others.entry((thread, stack)).or_default(),
        };
        *sum = sum.saturating_add(weight);
    }
    let first = first
        .into_iter()
        .enumerate()
        .filter_map(|(at, (owner, sum))| {
            let stack = NodeId(u32::try_from(at).ok()?);
            (sum > 0).then_some(((owner, stack), sum))
        });
    let mut sums: Vec<_> = first.chain(others).collect();
    sums.sort_unstable_by_key(|&(of, _)| of);
    sums
}

/// A thread's name in the output: its command with `_` for blanks; without a command, its id.
pub(super) fn thread_name(thread: &ProfileThread) -> Option<String> {
    Some(match (&*thread.comm, thread.tid) {
        ("", -1) => return None,
        ("", tid) => format!(":{tid}"),
        (comm, _) => visible(comm).replace(' ', "_").replace(';', ":"),
    })
}

/// The names of frames, computed once each; Java threads have their own.
#[derive(Default)]
struct FrameNames {
    plain: FxHashMap<FrameId, Box<[u32]>>,
    java: FxHashMap<FrameId, Box<[u32]>>,
}

impl FrameNames {
    fn names(
        &mut self,
        stacks: &mut Stacks,
        frames: &[Frame],
        id: FrameId,
        is_java: bool,
    ) -> &[u32] {
        let known = if is_java {
            &mut self.java
        } else {
            &mut self.plain
        };
        known.entry(id).or_insert_with(|| {
            let Some(frame) = frames.get(id.0 as usize) else {
                return Box::default();
            };
            let names = frame_names(frame, is_java).into_iter();
            names.map(|name| stacks.name(name, frame.kind)).collect()
        })
    }
}

/// The names of a frame, outermost first: JIT compilers join inlined functions with `->`.
pub(super) fn frame_names(frame: &Frame, is_java: bool) -> Vec<String> {
    if let Some(reason) = frame.unnamed {
        return vec![unnamed(frame, reason)];
    }
    let java = |name: String| match is_java && name.contains('/') {
        true => name.strip_prefix('L').map_or(name.clone(), str::to_owned),
        false => name,
    };
    let is_jit = frame.kind == FrameKind::Jit;
    let parts: Vec<&str> = match is_jit && frame.name.contains("->") {
        true => frame.name.split("->").collect(),
        false => vec![&frame.name],
    };
    let named = parts.iter().enumerate().map(|(at, part)| {
        let name = java(without_arguments(&visible(part).replace(';', ":")).to_owned());
        match at {
            0 => name,
            _ => name + "_[i]",
        }
    });
    named.collect()
}

fn unnamed(frame: &Frame, reason: Unnamed) -> String {
    match (&*frame.module, reason) {
        ("", _) | (_, Unnamed::KernelHidden) => "[unknown]".to_owned(),
        ("[kernel]", _) => "[[kernel.kallsyms]]".to_owned(),
        (module, _) => format!("[{}]", visible(module).replace(';', ":")),
    }
}

/// A function's name without its arguments: up to the first parenthesis that is not inside
/// brackets, and begins neither a Go method's receiver (`.(*T)`) nor `(anonymous namespace)`.
fn without_arguments(name: &str) -> &str {
    if !name.contains('(') {
        return name;
    }
    let mut depth = 0_i32;
    let mut before = ' ';
    for (at, c) in name.char_indices() {
        match c {
            '(' => {
                let is_part = before == '.' || name[at..].starts_with("(anonymous namespace)");
                if depth == 0 && !is_part {
                    return &name[..at];
                }
                depth += 1;
            }
            '<' | '{' | '[' => depth += 1,
            '>' if before == '-' => {}
            '>' | '}' | ']' | ')' => depth -= 1,
            _ => {}
        }
        before = c;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_arguments_and_nothing_else() {
        for (name, expected) in [
            ("f(int, char)", "f"),
            ("net/http.(*Client).Do", "net/http.(*Client).Do"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            (
                "std::function<void (int)>::call(int)",
                "std::function<void (int)>::call",
            ),
            (
                "{lambda(int)#1}::operator()(int) const",
                "{lambda(int)#1}::operator",
            ),
            ("<A as B(C)>::d", "<A as B(C)>::d"),
            ("do_fault", "do_fault"),
            ("T::operator->() const", "T::operator->"),
        ] {
            assert_eq!(without_arguments(name), expected, "{name}");
        }
    }

    #[test]
    fn java_and_code_made_at_run_time() {
        let frame = |name: &str| Frame {
            name: name.into(),
            module: "perf-1.map".into(),
            kind: FrameKind::Jit,
            unnamed: None,
        };
        let names = frame_names(&frame("Lorg/x/A;.call(Lb;)V->Lorg/x/B;::in"), true);
        assert_eq!(names, ["org/x/A:.call", "org/x/B:::in_[i]"]);
        let mut operator = frame("T::operator->");
        operator.kind = FrameKind::User;
        assert_eq!(frame_names(&operator, false), ["T::operator->"]);
    }
}
