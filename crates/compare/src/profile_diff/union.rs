//! The overlaid stacks of two profiles.

use super::spelling::{Files, Spellings, is_start, one_names_inlined};
use pagewise_model::normal_name::{normal, normal_module};
use pagewise_model::profile::{
    Frame, FrameId, FrameKind, FrameTable, NodeId, Profile, ProfileSample, StackTree,
};
use pagewise_model::symbol::Unnamed;
use rustc_hash::{FxHashMap, FxHashSet};

/// Frames and stacks of both; equal names in equal files are one function, at any address. Of a file
/// that has names on one side alone, the functions are not compared, only the file as a whole.
pub(super) struct Union {
    pub(super) frames: Vec<Frame>,
    pub(super) tree: StackTree,
    /// For each function on each node's path, whether this is its first occurrence.
    pub(super) outermost: Vec<bool>,
    /// The position of each node of A, and each of B, in `tree`.
    places: [Vec<NodeId>; 2],
}

impl Union {
    /// Sums of nodes by function, each once on a path.
    pub(super) fn by_function(&self, amounts: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.frames.len()];
        for (node, _, frame) in self.tree.nodes() {
            let at = node.0 as usize;
            if self.outermost[at] {
                sums[frame.0 as usize] += amounts[at];
            }
        }
        sums
    }

    pub(super) fn new(a: &Profile, b: &Profile) -> Self {
        let mut table = FrameTable::default();
        let mut tree = StackTree::default();
        let nameless = nameless([a, b]);
        let (of_a, of_b) = (Files::new(a), Files::new(b));
        let sides = [(a, &of_b), (b, &of_a)];
        let spellings = Spellings::new(sides);
        let inlined_differ = one_names_inlined(a, b);
        let mut reasons: FxHashMap<Box<str>, Unnamed> = FxHashMap::default();
        let places = sides.map(|(profile, files)| {
            let mut numbers: FxHashMap<(FrameId, &str), FrameId> = FxHashMap::default();
            let mut places = vec![NodeId::ROOT; profile.stacks.len()];
            // Where what a node calls goes on.
            let mut below = places.clone();
            let leaves: FxHashSet<NodeId> = profile.samples.iter().map(|one| one.stack).collect();
            for (node, parent, frame) in profile.stacks.nodes() {
                let above = below[parent.0 as usize];
                let of = &profile.frames[frame.0 as usize];
                let at = node.0 as usize;
                if inlined_differ && files.is_inlined(of) {
                    (places[at], below[at]) = (above, above);
                    continue;
                }
                let module = normal_module(files.file(profile, parent, of));
                // Where a chain broke depends on the unwinder.
                let is_end_of_broken = above == NodeId::ROOT && of.is_of_broken_chain();
                if is_start(of) || (is_end_of_broken && !leaves.contains(&node)) {
                    continue;
                }
                let number = numbers.entry((frame, module)).or_insert_with(|| {
                    let frame = comparable(of, module, &nameless, &mut reasons);
                    table.intern(match frame.unnamed {
                        None => Frame {
                            name: spellings.name(module, frame.name.into()).into(),
                            ..frame
                        },
                        Some(_) => frame,
                    })
                });
                let repeats = tree.frame(above) == Some(*number);
                // How many calls were inlined is not known of code without names.
                let is_merged = repeats && (nameless.contains(module) || of.is_of_broken_chain());
                places[at] = match is_merged {
                    true => above,
                    false => tree.child(above, *number),
                };
                below[at] = if is_end_of_broken { above } else { places[at] };
            }
            places
        });
        let frames = table.into_frames();
        let holder = Profile {
            frames,
            stacks: tree,
            ..Profile::default()
        };
        let outermost = pagewise_profile::weigh::outermost(&holder);
        Self {
            frames: holder.frames,
            tree: holder.stacks,
            outermost,
            places,
        }
    }

    /// The node of a sample of A (0) or B (1).
    pub(super) fn place(&self, side: usize, sample: &ProfileSample) -> usize {
        self.places[side][sample.stack.0 as usize].0 as usize
    }

    /// Whether a node's innermost function has no name.
    pub(super) fn ends_unnamed(&self, node: usize) -> bool {
        let node = NodeId(u32::try_from(node).unwrap_or(u32::MAX));
        let frame = self.tree.frame(node);
        frame.is_some_and(|frame| self.frames[frame.0 as usize].unnamed.is_some())
    }

    /// A node's functions, outermost first.
    pub(super) fn names(&self, node: usize) -> Vec<String> {
        let node = NodeId(u32::try_from(node).unwrap_or(u32::MAX));
        let mut names: Vec<String> = self
            .tree
            .frames(node)
            .map(|frame| self.frames[frame.0 as usize].name.to_string())
            .collect();
        names.reverse();
        names
    }
}

/// The frame in a form that is comparable between builds and runs: by its normal name, whether or
/// not it was inlined, and without regard to the reason for which it has no name.
fn comparable(
    frame: &Frame,
    module: &str,
    nameless: &FxHashSet<String>,
    reasons: &mut FxHashMap<Box<str>, Unnamed>,
) -> Frame {
    let kind = match (frame.kind, module) {
        (_, "[jit]") => FrameKind::Jit,
        (FrameKind::Inlined, _) => FrameKind::User,
        (kind, _) => kind,
    };
    let reason = match (frame.unnamed, nameless.contains(module)) {
        (None, false) => {
            return Frame {
                name: normal(&frame.name).into(),
                module: module.into(),
                kind,
                unnamed: None,
            };
        }
        (reason, _) => reason.unwrap_or(Unnamed::NoSymbol),
    };
    Frame {
        name: match module {
            "" => "[unknown]".into(),
            module => format!("[unknown in {module}]").into(),
        },
        module: module.into(),
        kind,
        unnamed: Some(*reasons.entry(module.into()).or_insert(reason)),
    }
}

/// Files whose functions have no name on one of two sides, and have some on the other.
fn nameless(sides: [&Profile; 2]) -> FxHashSet<String> {
    let [a, b] = sides.map(|profile| {
        let mut of: FxHashMap<&str, (bool, bool)> = FxHashMap::default();
        for frame in profile
            .frames
            .iter()
            .filter(|frame| !frame.module.is_empty())
        {
            let (named, unnamed) = of.entry(normal_module(&frame.module)).or_default();
            match frame.unnamed {
                None => *named = true,
                Some(_) => *unnamed = true,
            }
        }
        of
    });
    let only_on_one = a.iter().filter(|(module, (has_names, _))| {
        let other = b.get(*module);
        other.is_some_and(|(others, _)| has_names != others)
    });
    only_on_one.map(|(&module, _)| module.to_owned()).collect()
}
