//! A piece of a text, read without what came before it.
//!
//! A task's state is empty where it makes a call at the top level. From the first such call on, its
//! lines do not depend on what came before the piece, and form trees at once; the lines before it
//! wait. Switches, events and losses, which concern all lines of a CPU or all tasks, wait as well,
//! but also take effect in the piece.
//!
//! A line that does not name its task belongs to the one that the last switch on its CPU brought. If
//! that is in another piece, and lines of this piece name the same task, as in damaged text, the
//! piece is read once more with all its lines waiting.
//!
//! An interrupt's frames may appear at the top level after a call that has ended except for its
//! closing line, and an arrow announces that the next call belongs to an interrupt; neither is a
//! beginning.

use super::super::builder::{Builder, Sink, UNKNOWN};
use super::super::interrupts::is_interrupt;
use super::super::line::{Call, Content, Line, Span, Tail};
use super::super::names::{Absorbed, Names};
use super::super::switch;
use super::super::tree::{CallTree, keep_memory};
use super::waiting::{Entry, Waiting, renamed};

/// Number of calls whose memory is kept for further trees: 2.5 MiB.
const KEPT: usize = 1 << 16;

/// The contents of a piece of text.
pub(super) struct Piece {
    builder: Builder,
    found: Found,
    waiting: Waiting,
    /// CPUs on which tasks ran whose lines did not wait, since the last [`Entry::Ran`].
    ran: Vec<u32>,
    last: Option<(usize, Option<u32>)>,
    /// CPUs with lines whose task only the text before may tell, with the task where an event of
    /// the piece does.
    untold: Vec<(u32, Option<u32>)>,
    /// All lines wait.
    is_in_turn: bool,
}

/// The results of a piece's own lines, with the number of the line that ends it.
#[derive(Default)]
struct Found {
    at: u32,
    /// Number of valid trees at the front; the memory of the others is reused.
    kept: usize,
    trees: Vec<(u32, CallTree)>,
    bare: Vec<(u32, Tail, u32, Option<Span>)>,
}

impl Sink for Found {
    fn tree(&mut self, tree: &CallTree, names: &Names) {
        self.keep(&mut tree.clone(), names);
    }

    fn keep(&mut self, tree: &mut CallTree, _: &Names) {
        match self.trees.get_mut(self.kept) {
            Some((at, unused)) => {
                *at = self.at;
                std::mem::swap(unused, tree);
            }
            None => self.trees.push((self.at, std::mem::take(tree))),
        }
        self.kept += 1;
    }

    fn bare_close(&mut self, tail: Tail, depth: u32, span: Option<Span>) {
        self.bare.push((self.at, tail, depth, span));
    }
}

impl Default for Piece {
    fn default() -> Self {
        Self {
            builder: Builder::of_piece(),
            found: Found::default(),
            waiting: Waiting::default(),
            ran: Vec::new(),
            last: None,
            untold: Vec::new(),
            is_in_turn: false,
        }
    }
}

impl Piece {
    /// A piece whose lines are all replayed after those of the text before.
    pub fn in_turn() -> Self {
        Self {
            is_in_turn: true,
            ..Self::default()
        }
    }

    /// Clears everything but keeps the memory.
    pub fn restart(&mut self) {
        self.builder.restart();
        self.found.at = 0;
        self.found.bare.clear();
        self.waiting.clear();
        self.ran.clear();
        self.last = None;
        self.untold.clear();
        self.found.kept = 0;
        keep_memory(&mut self.found.trees, KEPT, |(_, tree)| tree);
        keep_memory(&mut self.builder.spare, KEPT, |tree| tree);
    }

    #[inline]
    pub fn line(&mut self, line: &Line<'_>, names: &Names) {
        self.found.at += 1;
        match line.content {
            Content::Leaf(_) | Content::Open(_) | Content::Close(_) => {
                let task = self.builder.task_of(line);
                if !self.builder.tasks[task].known {
                    return self.wait(task, line, names);
                }
                if self.last != Some((task, line.cpu)) {
                    self.last = Some((task, line.cpu));
                    self.note_ran(line.cpu);
                }
                self.builder.line(line, names, &mut self.found);
            }
            Content::Decoration | Content::Unknown | Content::Overruns(_) => {}
            _ => self.between_calls(line, names),
        }
    }

    /// A line of a task whose state is not known yet.
    #[cold]
    fn wait(&mut self, task: usize, line: &Line<'_>, names: &Names) {
        self.tell_who_ran(line.cpu);
        self.builder.is_leaving(task, line.cpu);
        let has_task = self.has_task(line);
        let stored = self.waiting.store(self.found.at, line);
        let state = &mut self.builder.tasks[task];
        let (Content::Leaf(Call { name, .. }) | Content::Open(Call { name, .. })) = line.content
        else {
            return self.waiting.entries.push(Entry::Line(stored));
        };
        let is_first = line.depth == 0 && state.called && !state.interrupt_next;
        if is_first && has_task && !self.is_in_turn && !is_interrupt(names.base(name)) {
            state.known = true;
            self.waiting.entries.push(Entry::First(stored));
            self.note_ran(line.cpu);
            return self.builder.line(line, names, &mut self.found);
        }
        state.called = true;
        state.interrupt_next = false;
        self.waiting.entries.push(Entry::Line(stored));
    }

    #[cold]
    fn between_calls(&mut self, line: &Line<'_>, _: &Names) {
        self.tell_who_ran(line.cpu);
        if let Content::IrqEnter = line.content {
            self.has_task(line);
            let task = self.builder.task_of(line);
            let state = &mut self.builder.tasks[task];
            state.interrupt_next = true;
            if state.known {
                return;
            }
        } else {
            if let Content::Event(text) = line.content
                && !self.has_task(line)
                && let Some(pid) = switch::left(text)
            {
                self.untold.push((line.cpu.unwrap_or(0), Some(pid)));
            }
            self.builder.between_calls(line, &mut NoEvents);
        }
        let stored = self.waiting.store(self.found.at, line);
        self.waiting.entries.push(Entry::Line(stored));
    }

    /// Whether it is known without the text before which task a line belongs to.
    fn has_task(&mut self, line: &Line<'_>) -> bool {
        let has_task = self.builder.key_of(line) & UNKNOWN == 0;
        let untold = (line.cpu.unwrap_or(0), None);
        if !has_task && !self.untold.contains(&untold) {
            self.untold.push(untold);
        }
        has_task
    }

    /// Whether lines that do not name their task belong, after all that came before, to a task
    /// that was read here without them.
    pub fn has_parted(&self, before: &Builder) -> bool {
        let tasks = self.untold.iter().map(|&(cpu, pid)| match pid {
            Some(pid) => u64::from(pid),
            None => before.running_on(cpu),
        });
        let own = |key| Some(&self.builder.tasks[*self.builder.index.get(&key)?]);
        tasks.filter_map(own).any(|task| task.known)
    }

    /// Records, before a line that waits, whether tasks of other lines ran on its CPU.
    fn tell_who_ran(&mut self, cpu: Option<u32>) {
        self.last = None;
        let cpu = cpu.unwrap_or(0);
        if let Some(place) = self.ran.iter().position(|&ran| ran == cpu) {
            self.ran.swap_remove(place);
            self.waiting.entries.push(Entry::Ran(cpu));
        }
    }

    fn note_ran(&mut self, cpu: Option<u32>) {
        let cpu = cpu.unwrap_or(0);
        if !self.ran.contains(&cpu) {
            self.ran.push(cpu);
        }
    }

    /// Ends the piece.
    pub fn end(&mut self) {
        let ran = self.ran.drain(..).map(Entry::Ran);
        self.waiting.entries.extend(ran);
    }

    /// Adds the piece to all that came before it: makes up for the lines that waited, passes
    /// everything to `sink` in order, and leaves `builder` as if it had read every line.
    pub fn join(
        &mut self,
        builder: &mut Builder,
        names: &Names,
        ids: &Absorbed,
        sink: &mut impl Sink,
    ) {
        if ids.differ() {
            self.found.rename(ids);
        }
        builder.parts.learn(names);
        let mut out = self.found.in_order();
        for entry in &self.waiting.entries {
            match entry {
                Entry::Ran(cpu) => drop(builder.leaving.remove(cpu)),
                Entry::Line(stored) => {
                    out.up_to(stored.at, names, sink);
                    builder.line(&stored.line(&self.waiting.texts, ids), names, sink);
                }
                Entry::First(stored) => {
                    builder.give_way(&stored.line(&self.waiting.texts, ids));
                }
            }
        }
        out.up_to(u32::MAX, names, sink);
        self.hand_over(builder, ids);
    }

    fn hand_over(&mut self, builder: &mut Builder, ids: &Absorbed) {
        let mut places = vec![None; self.builder.tasks.len()];
        for (&key, &task) in &self.builder.index {
            let state = &mut self.builder.tasks[task];
            if state.known {
                let place = builder.task(key);
                for node in &mut state.tree.nodes {
                    node.name = ids.id(node.name);
                }
                // Counted from the beginning of the text.
                let since = self.builder.losses - state.losses;
                state.losses = builder.losses.saturating_sub(since);
                std::mem::swap(state, &mut builder.tasks[place]);
                places[task] = Some(place);
            }
        }
        for (&cpu, &task) in &self.builder.leaving {
            if let Some(place) = places[task] {
                builder.leaving.insert(cpu, place);
            }
        }
        builder.incomplete.merge(&self.builder.incomplete);
        self.builder.spare.append(&mut builder.spare);
    }
}

impl Found {
    fn rename(&mut self, ids: &Absorbed) {
        for (_, tree) in &mut self.trees[..self.kept] {
            for node in &mut tree.nodes {
                node.name = ids.id(node.name);
            }
        }
        for (_, tail, ..) in &mut self.bare {
            *tail = renamed(*tail, ids);
        }
    }

    fn in_order(&mut self) -> InOrder<'_> {
        InOrder {
            trees: self.trees[..self.kept].iter_mut(),
            bare: &self.bare,
        }
    }
}

/// What still has to be passed on.
struct InOrder<'p> {
    trees: std::slice::IterMut<'p, (u32, CallTree)>,
    bare: &'p [(u32, Tail, u32, Option<Span>)],
}

impl InOrder<'_> {
    /// Passes on the results of the lines before `end`.
    fn up_to(&mut self, end: u32, names: &Names, sink: &mut impl Sink) {
        loop {
            let next_tree = self
                .trees
                .as_slice()
                .first()
                .map_or(u32::MAX, |tree| tree.0);
            let next_bare = self.bare.first().map_or(u32::MAX, |bare| bare.0);
            if next_tree < end.min(next_bare)
                && let Some((_, tree)) = self.trees.next()
            {
                sink.keep(tree, names);
            } else if let Some((&(at, tail, depth, span), rest)) = self.bare.split_first()
                && at < end
            {
                sink.bare_close(tail, depth, span);
                self.bare = rest;
            } else {
                return;
            }
        }
    }
}

/// Events and notes are passed on only after waiting.
struct NoEvents;

impl Sink for NoEvents {
    fn tree(&mut self, _: &CallTree, _: &Names) {}
}
