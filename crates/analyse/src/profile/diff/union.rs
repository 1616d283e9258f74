//! The overlaid stacks of two profiles.

use pagewise_model::profile::{
    Frame, FrameId, FrameTable, NodeId, Profile, ProfileSample, StackTree,
};

/// Frames and stacks of both; equal names in equal files are one function, at any address.
pub(super) struct Union {
    pub(super) frames: Vec<Frame>,
    pub(super) tree: StackTree,
    /// For each function on each node's path, whether this is its first occurrence.
    pub(super) outermost: Vec<bool>,
    /// The position of each node of A, and each of B, in `tree`.
    places: [Vec<NodeId>; 2],
}

impl Union {
    pub(super) fn of(a: &Profile, b: &Profile) -> Self {
        let mut table = FrameTable::default();
        let mut tree = StackTree::default();
        let places = [a, b].map(|profile| {
            let numbers: Vec<FrameId> = profile
                .frames
                .iter()
                .map(|frame| table.intern(frame.comparable()))
                .collect();
            let mut places = vec![NodeId::ROOT; profile.stacks.len()];
            for (node, parent, frame) in profile.stacks.nodes() {
                let above = places[parent.0 as usize];
                let (number, frame) =
                    (numbers[frame.0 as usize], &profile.frames[frame.0 as usize]);
                places[node.0 as usize] = tree.child_in_chain(above, number, frame);
            }
            places
        });
        let frames = table.into_frames();
        let holder = Profile {
            frames,
            stacks: tree,
            ..Profile::default()
        };
        let outermost = super::super::weigh::outermost(&holder);
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
