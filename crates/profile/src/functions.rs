//! From stacks of addresses to stacks of functions.

use pagewise_model::event::CpuMode;
use pagewise_model::profile::{Frame, FrameId, FrameKind, FrameTable, NodeId, StackTree};
use pagewise_model::stack::StackTable;
use pagewise_model::symbol::{Name, NameId, NamedList, Unnamed};

/// Turns stacks of addresses into stacks of functions.
pub(super) struct StackBuilder<'a> {
    named: &'a NamedList,
    pub frames: FrameTable,
    pub tree: StackTree,
    /// Frames of names in a mode, outermost first, and the list of each name in each mode.
    lists: Vec<Vec<FrameId>>,
    list_of: Vec<[Option<u32>; 3]>,
}

impl<'a> StackBuilder<'a> {
    pub fn new(named: &'a NamedList) -> Self {
        Self {
            named,
            frames: FrameTable::default(),
            tree: StackTree::default(),
            lists: Vec::new(),
            list_of: vec![[None; 3]; named.names.all().len() + 1],
        }
    }

    /// The stack of functions of each stack of addresses, by number.
    pub fn stacks(&mut self, stacks: &StackTable) -> Vec<NodeId> {
        let keys = stacks.keys().iter().enumerate();
        let lists: Vec<u32> = keys.map(|(at, key)| self.list(at, key.mode)).collect();
        // The last chain from its outermost function on: the next one usually begins like it.
        let mut last: Vec<(u32, NodeId)> = Vec::new();
        let callers = stacks.callers().map(|chain| {
            let mut node = NodeId::ROOT;
            for (depth, &at) in chain.iter().rev().enumerate() {
                let list = lists[at as usize];
                match last.get(depth) {
                    Some(&(known, there)) if known == list => node = there,
                    _ => {
                        node = self.called(node, list);
                        last.truncate(depth);
                        last.push((list, node));
                    }
                }
            }
            node
        });
        let callers: Vec<NodeId> = callers.collect();
        let nodes = stacks.stacks().iter().map(|stack| {
            let node = callers[stack.callers()];
            let list = stack.innermost().map(|at| lists[at]);
            list.map_or(node, |list| self.called(node, list))
        });
        nodes.collect()
    }

    /// A stack extended by the functions of one address.
    fn called(&mut self, callers: NodeId, list: u32) -> NodeId {
        let frames = self.lists[list as usize].iter();
        frames.fold(callers, |node, &frame| self.tree.child(node, frame))
    }

    /// The list of frames of the address at this position.
    fn list(&mut self, at: usize, mode: CpuMode) -> u32 {
        let name = self.named.of.get(at).copied();
        // The last place if there is no name.
        let place = name.map_or(self.list_of.len() - 1, NameId::index);
        if let Some(known) = self.list_of[place][mode as usize] {
            return known;
        }
        let new = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
        let frames = self.frames_of(name, mode);
        self.lists.push(frames);
        self.list_of[place][mode as usize] = Some(new);
        new
    }

    /// The frames of a name, outermost first: inlined calls have separate frames.
    fn frames_of(&mut self, name: Option<NameId>, mode: CpuMode) -> Vec<FrameId> {
        let kind = match mode {
            CpuMode::Kernel => FrameKind::Kernel,
            CpuMode::User | CpuMode::Other => FrameKind::User,
        };
        match name.and_then(|name| self.named.names.all().get(name.index())) {
            Some(Name::Known { functions, module }) => {
                let outermost = functions.len().saturating_sub(1);
                let frame = |(at, function): (usize, &String)| Frame {
                    name: function.as_str().into(),
                    module: module.as_str().into(),
                    kind: match (at == outermost, module.as_str()) {
                        (false, _) => FrameKind::Inlined,
                        (true, "[jit]") => FrameKind::Jit,
                        (true, _) => kind,
                    },
                    unnamed: None,
                };
                let frames = functions.iter().enumerate().rev().map(frame);
                frames.map(|frame| self.frames.intern(frame)).collect()
            }
            other => {
                let (reason, module) = match other {
                    Some(Name::Unknown { reason, module }) => (*reason, module.as_str()),
                    _ => (Unnamed::NoMapping, ""),
                };
                let frame = Frame {
                    name: match module {
                        "" => "[unknown]".into(),
                        module => format!("[unknown in {module}]").into(),
                    },
                    module: module.into(),
                    kind,
                    unnamed: Some(reason),
                };
                vec![self.frames.intern(frame)]
            }
        }
    }
}
