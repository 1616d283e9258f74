//! Function names, which occur millions of times and are stored once.
//!
//! A name is looked up by the bytes that the trace prints, so that a line costs one hash and one
//! comparison and no allocation. Several spellings may stand for one name: `f` and `f [module]`.

/// A function name of one trace; an index into its [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

impl NameId {
    /// The id as an index into tables next to [`Names`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a table has absorbed from another one.
#[derive(Default)]
pub(crate) struct Absorbed {
    spellings: usize,
    ids: Vec<u32>,
    /// Whether any id differs between the two tables.
    differ: bool,
}

impl Absorbed {
    /// The id in this table of a name in the other one.
    #[inline]
    pub fn id(&self, there: u32) -> u32 {
        self.ids.get(there as usize).copied().unwrap_or(there)
    }

    pub fn differ(&self) -> bool {
        self.differ
    }
}

#[derive(Clone, Copy)]
struct Slot {
    hash: u64,
    start: u32,
    len: u32,
    id: u32,
}

const EMPTY: u32 = u32::MAX;
const GUESS_BITS: u32 = 12;
const FREE: Slot = Slot {
    hash: 0,
    start: 0,
    len: 0,
    id: EMPTY,
};

/// All function names of a trace with their modules.
#[derive(Clone)]
pub struct Names {
    text: Vec<Box<str>>,
    modules: Vec<Option<Box<str>>>,
    spellings: Vec<u8>,
    slots: Vec<Slot>,
    filled: usize,
    /// Where each spelling is in `spellings`, in the order of arrival.
    noted: Vec<(u32, u32)>,
    /// Each name's first spelling.
    first: Vec<(u32, u32)>,
    /// The name that followed, for each hash of the last names.
    guesses: Vec<u32>,
    /// A hash of the last names; older ones are shifted out.
    history: u32,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            text: Vec::new(),
            modules: Vec::new(),
            spellings: Vec::new(),
            slots: vec![FREE; 1024],
            filled: 0,
            noted: Vec::new(),
            first: Vec::new(),
            guesses: Vec::new(),
            history: 0,
        }
    }
}

impl Names {
    /// The name printed as `raw`, if it has occurred before.
    #[inline]
    #[must_use]
    pub fn find(&self, raw: &[u8]) -> Option<NameId> {
        let slot = self.slots[self.slot_of(hash(raw), raw)];
        (slot.id != EMPTY).then_some(NameId(slot.id))
    }

    /// The same for names in the order of a trace. Calls repeat, so what followed the last names
    /// before usually follows them again: one comparison instead of a search.
    #[inline]
    pub(super) fn recall(&mut self, raw: &[u8]) -> Option<NameId> {
        let place = (self.history >> (32 - GUESS_BITS)) as usize;
        let guess = self.guesses.get(place).copied().unwrap_or(EMPTY);
        let id = match self.first.get(guess as usize) {
            Some(&spelling) if same(self.spelling(spelling), raw) => NameId(guess),
            _ => self.search(place, raw)?,
        };
        self.history = self.history << 4 ^ id.0.wrapping_mul(0x9e37_79b1);
        Some(id)
    }

    fn search(&mut self, place: usize, raw: &[u8]) -> Option<NameId> {
        let id = self.find(raw)?;
        if self.guesses.is_empty() {
            self.guesses = vec![EMPTY; 1 << GUESS_BITS];
        }
        self.guesses[place] = id.0;
        Some(id)
    }

    /// The name spelled `raw`, added if it is new.
    pub fn intern(&mut self, raw: &[u8]) -> NameId {
        if let Some(id) = self.find(raw) {
            return id;
        }
        let id = NameId(u32::try_from(self.text.len()).unwrap_or(EMPTY - 1));
        self.text
            .push(String::from_utf8_lossy(raw).into_owned().into());
        self.modules.push(None);
        self.spell(raw, id);
        id
    }

    /// Records `raw` as another spelling of `id`, a function of `module`; of several modules, the
    /// first counts.
    pub(super) fn alias(&mut self, raw: &[u8], id: NameId, module: &[u8]) {
        if self.module(id).is_none() {
            self.set_module(id, module);
        }
        if self.find(raw).is_none() {
            self.spell(raw, id);
        }
    }

    /// Records that `id` is a function of `module`.
    pub(crate) fn set_module(&mut self, id: NameId, module: &[u8]) {
        if let Some(slot) = self.modules.get_mut(id.index()) {
            *slot = Some(String::from_utf8_lossy(module).into_owned().into());
        }
    }

    /// The name as text; empty for an id of another trace.
    #[must_use]
    pub fn text(&self, id: NameId) -> &str {
        self.text.get(id.index()).map_or("", |text| text)
    }

    /// The module that the function belongs to, where the trace shows it.
    #[must_use]
    pub fn module(&self, id: NameId) -> Option<&str> {
        self.modules.get(id.index())?.as_deref()
    }

    /// The name without what the compiler or the build added to it; see [`base_name`].
    #[must_use]
    pub fn base(&self, id: NameId) -> &str {
        base_name(self.text(id))
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Each name with its id.
    pub fn iter(&self) -> impl Iterator<Item = (NameId, &str)> {
        (0..)
            .map(NameId)
            .zip(self.text.iter().map(|text| text.as_ref()))
    }

    /// Takes in another table's names in their order there; `known` records how much of that table
    /// is already here, and with which ids.
    pub(crate) fn absorb(&mut self, other: &Self, known: &mut Absorbed) {
        for &(start, len) in &other.noted[known.spellings..] {
            let raw = &other.spellings[start as usize..(start + len) as usize];
            let Some(id) = other.find(raw) else { continue };
            if id.index() == known.ids.len() {
                let here = self.intern(raw);
                known.ids.push(here.0);
                known.differ |= here != id;
            }
            let here = NameId(known.ids[id.index()]);
            if let Some(module) = &other.modules[id.index()] {
                self.alias(raw, here, module.as_bytes());
            }
        }
        known.spellings = other.noted.len();
    }

    fn spell(&mut self, raw: &[u8], id: NameId) {
        if self.filled * 2 >= self.slots.len() {
            self.grow();
        }
        let (Ok(start), Ok(len)) = (
            u32::try_from(self.spellings.len()),
            u32::try_from(raw.len()),
        ) else {
            return;
        };
        let hash = hash(raw);
        let at = self.slot_of(hash, raw);
        self.spellings.extend_from_slice(raw);
        self.slots[at] = Slot {
            hash,
            start,
            len,
            id: id.0,
        };
        self.filled += 1;
        self.noted.push((start, len));
        if id.index() == self.first.len() {
            self.first.push((start, len));
        }
    }

    /// The slot of `raw`, or the free one where it belongs. The table is never more than half full,
    /// so the search ends.
    #[inline]
    fn slot_of(&self, hash: u64, raw: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = high_bits(hash) & mask;
        loop {
            let slot = self.slots[at];
            if slot.id == EMPTY
                || slot.hash == hash && same(self.spelling((slot.start, slot.len)), raw)
            {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn spelling(&self, (start, len): (u32, u32)) -> &[u8] {
        let start = start as usize;
        self.spellings
            .get(start..start + len as usize)
            .unwrap_or(&[])
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 2;
        let old = std::mem::replace(&mut self.slots, vec![FREE; size]);
        for slot in old.into_iter().filter(|slot| slot.id != EMPTY) {
            let mut at = high_bits(slot.hash) & (size - 1);
            while self.slots[at].id != EMPTY {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = slot;
        }
    }
}

/// A function's name in the source: without the suffixes of compiler clones (`.isra.0`,
/// `.part.3`, `.constprop.1`, `.cold`, `.llvm.…`) and of allocation profiling (`_noprof`, since
/// Linux 6.10).
#[must_use]
pub fn base_name(name: &str) -> &str {
    let name = name.split_once('.').map_or(name, |(base, _)| base);
    name.strip_suffix("_noprof").unwrap_or(name)
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "a table index keeps the well-mixed upper bits on any word size"
)]
#[inline]
fn high_bits(hash: u64) -> usize {
    (hash >> 32) as usize
}

const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(MIX)
}

/// Whether two short texts are equal, without the call that `==` makes; the last eight (or four)
/// bytes may be compared twice.
#[inline]
pub(super) fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    if let (Some(x), Some(y)) = (a.last_chunk::<8>(), b.last_chunk::<8>()) {
        let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
        let mut differ = u64::from_ne_bytes(*x) ^ u64::from_ne_bytes(*y);
        for (x, y) in words {
            differ |= u64::from_ne_bytes(*x) ^ u64::from_ne_bytes(*y);
        }
        return differ == 0;
    }
    if let (Some(x), Some(y)) = (a.last_chunk::<4>(), b.last_chunk::<4>()) {
        return x == y && a.first_chunk::<4>() == b.first_chunk::<4>();
    }
    a.iter().zip(b).all(|(x, y)| x == y)
}

/// A multiplicative hash over eight bytes at a time; the last eight may overlap.
#[inline]
fn hash(bytes: &[u8]) -> u64 {
    let mut state = bytes.len() as u64;
    if let Some(last) = bytes.last_chunk::<8>() {
        let (words, _) = bytes.as_chunks::<8>();
        for word in words {
            state = mix(state, u64::from_le_bytes(*word));
        }
        return mix(state, u64::from_le_bytes(*last));
    }
    for &byte in bytes {
        state = mix(state, u64::from(byte));
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_id_while_the_table_grows() {
        let mut names = Names::default();
        let ids: Vec<NameId> = (0..5000)
            .map(|i| names.intern(format!("function_{i}").as_bytes()))
            .collect();
        for (i, id) in ids.iter().enumerate() {
            assert_eq!(
                names.find(format!("function_{i}").as_bytes()),
                Some(*id),
                "function_{i}"
            );
            assert_eq!(names.text(*id), format!("function_{i}"));
        }
        assert_eq!(names.len(), 5000);
    }

    #[test]
    fn a_module_spelling_leads_to_the_same_name() {
        let mut names = Names::default();
        let id = names.intern(b"ext4_page_mkwrite");
        names.alias(b"ext4_page_mkwrite [ext4]", id, b"ext4");
        assert_eq!(names.find(b"ext4_page_mkwrite [ext4]"), Some(id));
        assert_eq!(names.module(id), Some("ext4"));
    }

    #[test]
    fn base_names_drop_what_the_build_added() {
        for (name, base) in [
            ("folio_memcg_lock.part.0", "folio_memcg_lock"),
            ("foo.isra.0.cold", "foo"),
            ("__alloc_pages_noprof", "__alloc_pages"),
            ("handle_mm_fault", "handle_mm_fault"),
        ] {
            assert_eq!(base_name(name), base);
        }
    }
}
