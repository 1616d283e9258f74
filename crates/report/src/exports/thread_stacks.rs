//! Stacks of one event below the names of their threads, not merged by name.

use super::stacks::{frame_names, thread_name, weights};
use pagewise_model::profile::{Frame, NodeId, Profile};
use rustc_hash::FxHashMap;

/// Number of an item in [`ThreadStacks`].
pub(super) type ItemNumber = u32;
/// A number that stands for no item.
const NONE: u32 = u32::MAX;

/// A tree of items: threads by name below the root, and their stacks below them.
pub(super) struct ThreadStacks {
    items: Vec<Item>,
    /// Names of items, one or more consecutive ones per item, outermost first.
    lists: Vec<u32>,
    names: Vec<String>,
    ranks: Vec<Ranks>,
}

/// A thread's name, or a frame of one of its stacks.
struct Item {
    names: Range,
    /// The most recent callee, and for a callee the one added before it to the same caller.
    last_callee: ItemNumber,
    before: ItemNumber,
    own: u64,
}

/// Part of [`ThreadStacks::lists`].
#[derive(Clone, Copy)]
struct Range {
    from: u32,
    len: u32,
}

/// A name's position in byte order among all names: alone, and followed by `;`.
#[derive(Clone, Copy, Default)]
pub(super) struct Ranks {
    pub alone: u32,
    pub before_callees: u32,
}

impl ThreadStacks {
    /// The parent of all stacks.
    pub const ROOT: ItemNumber = 0;

    /// The stacks of one event.
    pub fn new(profile: &Profile, event: u16) -> Self {
        let mut names = NameTable::default();
        let threads = profile
            .threads
            .iter()
            .map(|thread| Some(names.number(thread_name(thread)?)));
        let threads: Vec<Option<u32>> = threads.collect();
        let mut stacks = Self {
            items: Vec::new(),
            lists: Vec::new(),
            names: Vec::new(),
            ranks: Vec::new(),
        };
        let nothing = stacks.list(&[]);
        stacks.item(NONE, nothing);
        stacks.add(profile, &weights(profile, event, &threads), &mut names);
        stacks.ranks = ranks(&names.texts);
        stacks.names = names.texts;
        stacks
    }

    fn add(
        &mut self,
        profile: &Profile,
        weights: &[((Option<u32>, NodeId), u64)],
        names: &mut NameTable,
    ) {
        let mut frames = FrameLists::new(profile);
        let mut way: Vec<NodeId> = Vec::new();
        // The thread below which each stack was last placed, and the item it has there.
        let mut places: Vec<(ItemNumber, ItemNumber)> = vec![(NONE, NONE); profile.stacks.len()];
        for of_thread in weights.chunk_by(|a, b| a.0.0 == b.0.0) {
            let thread = of_thread[0].0.0;
            let is_java = thread.is_some_and(|name| names.texts[name as usize].starts_with("java"));
            let root = thread.map_or(Self::ROOT, |name| {
                let list = self.list(&[name]);
                self.item(Self::ROOT, list)
            });
            for &((_, stack), weight) in of_thread {
                let mut at = stack;
                while at != NodeId::ROOT && places[at.0 as usize].0 != root {
                    way.push(at);
                    at = profile.stacks.parent(at);
                }
                let mut item = match at {
                    NodeId::ROOT => root,
                    met => places[met.0 as usize].1,
                };
                for at in way.drain(..).rev() {
                    let frame = profile.stacks.frame(at).map_or(0, |frame| frame.0 as usize);
                    let list = frames.list(self, &profile.frames, frame, is_java, names);
                    item = self.item(item, list);
                    places[at.0 as usize] = (root, item);
                }
                if item == Self::ROOT {
                    let nameless = self.list(&[names.number("[no stack]".to_owned())]);
                    item = self.item(Self::ROOT, nameless);
                }
                let own = &mut self.items[item as usize].own;
                *own = own.saturating_add(weight);
            }
        }
    }

    fn list(&mut self, names: &[u32]) -> Range {
        let from = number(self.lists.len());
        self.lists.extend_from_slice(names);
        let len = number(names.len());
        Range { from, len }
    }

    fn item(&mut self, caller: ItemNumber, names: Range) -> ItemNumber {
        let new = number(self.items.len());
        let before = match self.items.get_mut(caller as usize) {
            Some(caller) => std::mem::replace(&mut caller.last_callee, new),
            None => NONE,
        };
        self.items.push(Item {
            names,
            last_callee: NONE,
            before,
            own: 0,
        });
        new
    }

    /// The callees of an item, in no particular order.
    pub fn callees(&self, item: ItemNumber) -> impl Iterator<Item = ItemNumber> + '_ {
        let mut next = self.items[item as usize].last_callee;
        std::iter::from_fn(move || {
            let item = next;
            next = self.items.get(item as usize)?.before;
            Some(item)
        })
    }

    /// The weight of stacks that end at an item.
    pub fn own(&self, item: ItemNumber) -> u64 {
        self.items[item as usize].own
    }

    /// The name of an item at this position among its names.
    pub fn name_of(&self, item: ItemNumber, at: u32) -> Option<u32> {
        let Range { from, len } = self.items[item as usize].names;
        (at < len).then(|| self.lists[(from + at) as usize])
    }

    /// The text of a name.
    pub fn name(&self, name: u32) -> &str {
        &self.names[name as usize]
    }

    /// The position of a name in byte order.
    pub fn ranks(&self, name: u32) -> Ranks {
        self.ranks[name as usize]
    }
}

/// Distinct names.
#[derive(Default)]
struct NameTable {
    texts: Vec<String>,
    numbers: FxHashMap<String, u32>,
}

impl NameTable {
    fn number(&mut self, text: String) -> u32 {
        if let Some(&known) = self.numbers.get(&text) {
            return known;
        }
        let new = number(self.texts.len());
        self.numbers.insert(text.clone(), new);
        self.texts.push(text);
        new
    }
}

/// The names of frames, computed once each; Java threads have their own.
struct FrameLists {
    plain: Vec<Option<Range>>,
    java: Vec<Option<Range>>,
}

impl FrameLists {
    fn new(profile: &Profile) -> Self {
        Self {
            plain: vec![None; profile.frames.len()],
            java: vec![None; profile.frames.len()],
        }
    }

    fn list(
        &mut self,
        stacks: &mut ThreadStacks,
        frames: &[Frame],
        frame: usize,
        is_java: bool,
        names: &mut NameTable,
    ) -> Range {
        let known = match is_java {
            true => &mut self.java[frame],
            false => &mut self.plain[frame],
        };
        *known.get_or_insert_with(|| {
            let list = frame_names(&frames[frame], is_java).into_iter();
            let list: Vec<u32> = list.map(|name| names.number(name)).collect();
            stacks.list(&list)
        })
    }
}

/// Sorted once: a name that another begins with comes before it, and followed by `;` before or after
/// it. So the names whose `;` is still to come are a stack, each the beginning of the next.
fn ranks(names: &[String]) -> Vec<Ranks> {
    let mut sorted: Vec<(&str, u32)> = names.iter().map(String::as_str).zip(0_u32..).collect();
    sorted.sort_unstable();
    let mut ranks = vec![Ranks::default(); names.len()];
    let mut open: Vec<(&str, u32)> = Vec::new();
    let mut next = 0..;
    let mut rank = || next.next().unwrap_or(u32::MAX);
    for (name, number) in sorted {
        while let Some((_, before)) = open.pop_if(|&mut (before, _)| comes_before(before, name)) {
            ranks[before as usize].before_callees = rank();
        }
        ranks[number as usize].alone = rank();
        open.push((name, number));
    }
    for (_, before) in open.into_iter().rev() {
        ranks[before as usize].before_callees = rank();
    }
    ranks
}

/// Whether a name followed by `;` comes before a name that is greater than it.
fn comes_before(name: &str, greater: &str) -> bool {
    match greater.as_bytes().strip_prefix(name.as_bytes()) {
        Some(rest) => rest.first() >= Some(&b';'),
        None => true,
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_ranks_of_all_texts_sorted() {
        let parts = ["", "a", "-", "=", ":", "ab", "z"];
        let mut names: Vec<String> = parts
            .iter()
            .flat_map(|first| parts.iter().map(move |second| format!("{first}{second}")))
            .flat_map(|two| parts.iter().map(move |third| format!("{two}{third}")))
            .collect();
        names.sort_unstable();
        names.dedup();
        // An order that is not that of the texts.
        names.sort_by_key(|name| (name.len() % 3, name.chars().rev().collect::<String>()));
        let ranks = ranks(&names);
        let alone = names
            .iter()
            .zip(&ranks)
            .map(|(name, of)| (of.alone, name.clone()));
        let before = names.iter().zip(&ranks);
        let before = before.map(|(name, of)| (of.before_callees, format!("{name};")));
        let mut all: Vec<(u32, String)> = alone.chain(before).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(all.windows(2).all(|pair| pair[0].1 < pair[1].1));
    }
}
