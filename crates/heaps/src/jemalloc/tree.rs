//! The map from pages to extents: a radix tree, whose root is a variable.
//!
//! ```text
//!  root: variable ──▶ (inner ──▶) leaf ──▶ extent          indexed by parts of the page's address
//! ```
//!
//! Two shapes are known: two levels of 18 bits whose leaves are words (address spaces of 48 bits),
//! and three of 15 bits whose leaves are pairs of words (of 57 bits). The root is found by a path
//! from a variable to an extent whose own address names the same path.

use super::super::Image;
use super::super::scattered::Scattered;
use super::PAGE;
use super::base::Blocks;
use pagewise_model::memory::PageState;
use std::collections::BTreeSet;

/// What the map says of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// The page.
    pub address: u64,
    /// Where this is written.
    pub place: u64,
    /// Where its extent is described.
    pub extent: u64,
    pub class: u64,
    pub is_slab: bool,
}

/// A shape of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    levels: u32,
    /// Bits of the address that each level tells.
    bits: u32,
    /// Bytes of an element of a leaf.
    element: u64,
}

const SHAPES: [Shape; 2] = [
    Shape {
        levels: 2,
        bits: 18,
        element: 8,
    },
    Shape {
        levels: 3,
        bits: 15,
        element: 16,
    },
];

impl Shape {
    fn fan_out(self) -> u64 {
        1 << self.bits
    }

    /// Bytes of the node at this level; the root's is 0.
    fn bytes(self, level: u32) -> u64 {
        match level + 1 == self.levels {
            true => self.fan_out() * self.element,
            false => self.fan_out() * 8,
        }
    }

    /// Number of the element of this level for an address.
    fn number(self, address: u64, level: u32) -> u64 {
        let below = self.bits * (self.levels - 1 - level);
        (address / PAGE) >> below & (self.fan_out() - 1)
    }
}

/// The tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    pub root: u64,
    shape: Shape,
}

/// Alignment of descriptions of extents that all versions keep.
const ALIGNED: u64 = 64;
/// User space.
const HIGHEST: u64 = 1 << 56;

/// The trees whose roots are among these variables. More than one if several libraries contain
/// jemalloc.
pub(super) fn find(
    image: &mut Image<'_>,
    words: &mut Scattered<'_>,
    data: &[(u64, u64)],
) -> Vec<Tree> {
    let mut own = Blocks::default();
    let mut roots: BTreeSet<(u64, usize)> = BTreeSet::new();
    for &(start, end) in data {
        let runs: Vec<_> = image.presence().within(start, end).collect();
        for run in runs.iter().filter(|run| run.state != PageState::Swapped) {
            for place in (run.start..run.end).step_by(8) {
                let Ok(node) = image.word(place) else {
                    break;
                };
                let is_node = node != 0 && node < HIGHEST && node.is_multiple_of(ALIGNED);
                if !is_node || !own.note(words, node) {
                    continue;
                }
                for (number, shape) in SHAPES.iter().enumerate() {
                    let root = root(words, *shape, place, node);
                    roots.extend(
                        root.filter(|root| (start..end).contains(root))
                            .map(|root| (root, number)),
                    );
                }
            }
        }
    }
    roots
        .into_iter()
        .map(|(root, number)| Tree {
            root,
            shape: SHAPES[number],
        })
        .collect()
}

/// Where the root is, if the variable at `place` is one of its elements and leads to `node`.
fn root(words: &mut Scattered<'_>, shape: Shape, place: u64, node: u64) -> Option<u64> {
    let mut node = node;
    let mut numbers = Vec::new();
    for level in 1..shape.levels - 1 {
        let (number, next) = first(words, node, shape.bytes(level), 8)?;
        numbers.push(number);
        node = next;
    }
    let (number, bits) = first(words, node, shape.bytes(shape.levels - 1), shape.element)?;
    numbers.push(number);
    let extent = extent_of(bits);
    let start = words.word(extent.checked_add(8)?).ok()? / PAGE * PAGE;
    let size = words.word(extent.checked_add(16)?).ok()? / PAGE * PAGE;
    // The page may be any of the extent; its upper parts are the extent's own.
    let mut levels = (1..shape.levels).zip(&numbers);
    let page = levels.try_fold(0, |page, (_, number)| Some(page << shape.bits | number))?;
    let below = shape.bits * (shape.levels - 1);
    let upper = (start / PAGE) >> below;
    let address = (upper << below | page) * PAGE;
    let holds = size > 0 && address >= start && address - start < size;
    let root = place.checked_sub(8 * shape.number(address, 0))?;
    (holds && start < HIGHEST).then_some(root)
}

/// The first element of a node that is not zero, with its number.
fn first(words: &mut Scattered<'_>, node: u64, bytes: u64, element: u64) -> Option<(u64, u64)> {
    let end = node.checked_add(bytes)?;
    let runs: Vec<_> = words.presence().within(node, end).collect();
    for run in runs {
        let from = node + (run.start - node).next_multiple_of(element);
        for place in (from..run.end).step_by(usize::try_from(element).ok()?) {
            let word = words.word(place).ok()?;
            if word != 0 {
                let is_plausible = word.is_multiple_of(8) || element == 8;
                return is_plausible.then_some(((place - node) / element, word));
            }
        }
    }
    None
}

/// The description that an element of a leaf leads to: the low 48 bits, without flags.
fn extent_of(bits: u64) -> u64 {
    bits & 0xffff_ffff_ffff & !(ALIGNED - 1)
}

impl Tree {
    /// Calls `each` for the pages of all extents, by address, until it says stop. Pages in the middle
    /// of a large block are not in the map.
    pub fn each(&self, words: &mut Scattered<'_>, each: &mut dyn FnMut(Leaf) -> bool) {
        self.node(self.root, 0, 0, words, each);
    }

    fn node(
        &self,
        node: u64,
        level: u32,
        upper: u64,
        words: &mut Scattered<'_>,
        each: &mut dyn FnMut(Leaf) -> bool,
    ) -> bool {
        let shape = self.shape;
        let is_leaf = level + 1 == shape.levels;
        let element = if is_leaf { shape.element } else { 8 };
        let Some(end) = node.checked_add(shape.bytes(level)) else {
            return true;
        };
        let runs: Vec<_> = words.presence().within(node, end).collect();
        for run in runs {
            let from = node + (run.start - node).next_multiple_of(element);
            for place in (from..run.end).step_by(usize::try_from(element).unwrap_or(8)) {
                let Ok(word) = words.word(place) else {
                    break;
                };
                if word == 0 {
                    continue;
                }
                let key = (upper << shape.bits) | ((place - node) / element);
                let goes_on = match is_leaf {
                    false => self.node(word, level + 1, key, words, each),
                    true => match self.leaf(place, word, key, words) {
                        Some(leaf) => each(leaf),
                        None => true,
                    },
                };
                if !goes_on {
                    return false;
                }
            }
        }
        true
    }

    fn leaf(&self, place: u64, word: u64, key: u64, words: &mut Scattered<'_>) -> Option<Leaf> {
        let (extent, class, is_slab) = match self.shape.element {
            8 => (extent_of(word), word >> 48 & 0xff, word & 1 != 0),
            _ => {
                let about = words.word(place + 8).ok()? & 0xffff_ffff;
                (word, about >> 5, about & 1 != 0)
            }
        };
        Some(Leaf {
            address: key * PAGE,
            place,
            extent,
            class,
            is_slab,
        })
    }
}
