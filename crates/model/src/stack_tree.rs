//! Stacks as a tree, so that a stack ten thousand deep costs only its new frames.

use crate::frame::{Frame, FrameId, NodeId};
use crate::pairs::Pairs;

/// Stacks as a tree: each node adds one frame to its parent's stack. Node 0 is the empty stack; a
/// parent's number is always below its child's, so a single backward pass sums up a tree.
#[derive(Clone, Debug)]
pub struct StackTree {
    parents: Vec<NodeId>,
    frames: Vec<FrameId>,
    /// Nodes by parent and frame.
    children: Pairs,
}

impl Default for StackTree {
    fn default() -> Self {
        Self {
            parents: vec![NodeId::ROOT],
            frames: vec![FrameId(u32::MAX)],
            children: Pairs::default(),
        }
    }
}

impl StackTree {
    /// The stack `parent` with `frame` called by its innermost function.
    pub fn child(&mut self, parent: NodeId, frame: FrameId) -> NodeId {
        let next = NodeId(u32::try_from(self.parents.len()).unwrap_or(u32::MAX));
        let node = NodeId(self.children.find_or_add((parent.0, frame.0), next.0));
        if node == next {
            self.parents.push(parent);
            self.frames.push(frame);
        }
        node
    }

    /// The same if that stack already exists.
    #[inline]
    pub fn known_child(&self, parent: NodeId, frame: FrameId) -> Option<NodeId> {
        self.children.find((parent.0, frame.0)).map(NodeId)
    }

    /// As [`child`](Self::child), but in a broken chain, a frame that repeats its caller adds
    /// nothing.
    pub fn child_in_chain(&mut self, parent: NodeId, id: FrameId, frame: &Frame) -> NodeId {
        match frame.is_of_broken_chain() && self.frame(parent) == Some(id) {
            true => parent,
            false => self.child(parent, id),
        }
    }

    /// The stack of these frames, outermost first.
    pub fn intern(&mut self, outermost_first: impl IntoIterator<Item = FrameId>) -> NodeId {
        let mut node = NodeId::ROOT;
        for frame in outermost_first {
            node = self.child(node, frame);
        }
        node
    }

    /// The number of nodes, the root included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Whether there is only the empty stack.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parents.len() == 1
    }

    /// The stack that `node` extends; the root's is the root.
    #[must_use]
    pub fn parent(&self, node: NodeId) -> NodeId {
        self.parents[node.0 as usize]
    }

    /// The frame that `node` adds; `None` for the root.
    #[must_use]
    pub fn frame(&self, node: NodeId) -> Option<FrameId> {
        (node != NodeId::ROOT).then(|| self.frames[node.0 as usize])
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, node: NodeId) -> impl Iterator<Item = FrameId> + '_ {
        let mut at = node;
        std::iter::from_fn(move || {
            let frame = self.frame(at)?;
            at = self.parent(at);
            Some(frame)
        })
    }

    /// Each node except the root: its number, its parent, its frame; parents come first.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (NodeId, NodeId, FrameId)> + '_ {
        let pairs = self.parents.iter().zip(&self.frames).enumerate().skip(1);
        // A number that does not fit was never assigned, see `child`.
        pairs.map(|(at, (&parent, &frame))| {
            (NodeId(u32::try_from(at).unwrap_or(u32::MAX)), parent, frame)
        })
    }

    /// Turns each node's own weight into the weight of all stacks that begin with it.
    ///
    /// # Panics
    /// When `weights` does not have one value per node.
    pub fn accumulate<W: Copy + std::ops::AddAssign>(&self, weights: &mut [W]) {
        assert_eq!(weights.len(), self.len(), "one weight for each node");
        for at in (1..weights.len()).rev() {
            let own = weights[at];
            weights[self.parents[at].0 as usize] += own;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn stacks_share_what_they_have_in_common_and_sum_up_to_the_root() {
        let mut tree = StackTree::default();
        let deep = tree.intern((0..10_000).map(FrameId));
        let branch = tree.intern([FrameId(0), FrameId(7)]);
        assert_eq!(tree.len(), 10_002);
        assert_eq!(tree.intern([FrameId(0), FrameId(7)]), branch);
        let mut weights = vec![0_u64; tree.len()];
        weights[deep.0 as usize] = 5;
        weights[branch.0 as usize] = 3;
        tree.accumulate(&mut weights);
        assert_eq!((weights[0], weights[1], weights[2]), (8, 8, 5));
        let frames: Vec<u32> = tree.frames(branch).map(|frame| frame.0).collect();
        assert_eq!(frames, [7, 0]);
    }

    #[test]
    fn every_child_is_found_and_no_other() {
        let mut tree = StackTree::default();
        let mut naive: HashMap<(NodeId, FrameId), NodeId> = HashMap::new();
        let mut random = 7_u32;
        let mut below = |limit: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) % limit
        };
        for _ in 0..50_000 {
            let parent = NodeId(below(u32::try_from(tree.len()).expect("few")));
            let frame = FrameId(below(40));
            let known = naive.get(&(parent, frame)).copied();
            assert_eq!(tree.known_child(parent, frame), known);
            let node = tree.child(parent, frame);
            assert_eq!(*naive.entry((parent, frame)).or_insert(node), node);
            assert_eq!((tree.parent(node), tree.frame(node)), (parent, Some(frame)));
        }
        assert_eq!(tree.len(), naive.len() + 1);
    }
}
