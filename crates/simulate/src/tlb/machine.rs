//! Processors, described as data.

use super::Replacement;
use serde::Deserialize;

/// Most levels of TLBs.
pub const LEVELS: usize = 3;

/// A page size of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageSize {
    /// The base page.
    Small,
    /// The next size up, which transparent huge pages use.
    Huge,
}

/// The translation stage that a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Virtual addresses of the program or guest.
    First,
    /// Physical addresses of a guest.
    Second,
}

/// A processor's address translation, as described by `machines/*.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The displayed name.
    pub name: String,
    /// Bytes of a base page; a power of two.
    pub small_page: u64,
    /// Bytes of a huge page; a power of two.
    pub huge_page: u64,
    /// How a guest's translations are cached.
    pub stages: Stages,
    /// TLBs, the fastest first.
    #[serde(rename = "level")]
    pub levels: Vec<Level>,
    /// What a refill does and costs.
    pub walk: Walk,
    /// The cost of changing page sizes.
    #[serde(default)]
    pub change: Change,
}

/// How the TLBs cache a guest's two translations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stages {
    /// The last level has entries of both stages, the levels before it their product (MIPS VZ).
    Separate,
    /// All levels have the product, of the smaller size (x86 EPT and NPT, Arm stage 2).
    Product,
}

/// A level of TLBs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// The displayed name.
    pub name: String,
    /// Additional nanoseconds of a hit in this level, compared with one in the first.
    #[serde(default)]
    pub hit_ns: f64,
    /// Whether entries dropped in this level are also dropped in the levels before it.
    #[serde(default)]
    pub is_inclusive: bool,
    /// Its arrays; at most one of them stores a given page size.
    #[serde(rename = "array")]
    pub arrays: Vec<Array>,
}

/// An array of entries.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// Page sizes it stores: `small`, `huge`.
    pub holds: Vec<Size>,
    /// Entries.
    pub entries: u32,
    /// Ways per set; the number of entries if fully associative.
    pub ways: u32,
    /// Replacement.
    pub replacement: Replacement,
    /// Neighbouring small pages in an entry (2 in MIPS's even/odd pairs).
    #[serde(default = "one")]
    pub pages_per_entry: u32,
    /// How the set is selected.
    #[serde(default)]
    pub index: Index,
}

/// A page size in TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// The base page.
    Small,
    /// The huge page.
    Huge,
}

/// How a set is selected by a page number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Index {
    /// By its lowest bits.
    #[default]
    Linear,
    /// By its lowest bits, XORed with the same number of bits above them.
    Xor,
}

/// What happens beyond the last level.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Walk {
    /// Nanoseconds of a refill of a small page, without references.
    pub small_ns: f64,
    /// Nanoseconds of a refill of a huge page, without references.
    pub huge_ns: f64,
    /// Nanoseconds of each reference to a page table.
    #[serde(default)]
    pub reference_ns: f64,
    /// Levels of the page table for a small page; a huge page needs one less. 0: references are part
    /// of the fixed cost and not counted.
    #[serde(default)]
    pub levels: u32,
    /// Page-walk caches.
    #[serde(default, rename = "cache")]
    pub caches: Vec<WalkCache>,
    /// Upper levels of a host's table that are assumed to be always cached in a nested walk.
    #[serde(default)]
    pub nested_levels_cached: u32,
    /// Entries of the cache of guest physical pages in a nested walk; 0 for none.
    #[serde(default)]
    pub nested_entries: u32,
    /// Whether reading a guest's page tables needs second-stage entries in the TLB, where the
    /// stages have separate entries.
    #[serde(default)]
    pub tables_need_second_stage: bool,
}

/// A page-walk cache: fully associative, LRU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WalkCache {
    /// References that a walk for a small page still needs after a hit.
    pub remaining: u32,
    /// Entries.
    pub entries: u32,
}

/// Cost of changing page sizes, in CPU time of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Nanoseconds to split a huge page.
    pub split_ns: f64,
    /// Nanoseconds to build one.
    pub collapse_ns: f64,
}

/// Most entries of a walk cache: these caches are fully associative.
const MOST_WALK_ENTRIES: u32 = 256;

/// Most sets, and most neighbouring pages in an entry: sets are selected by 32 bits of a page's
/// number.
const MOST_SETS: u32 = 8192;
const MOST_NEIGHBOURS: u32 = 16;

fn one() -> u32 {
    1
}

/// Why a machine's description can't be used.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// It is not valid TOML of this structure.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// It describes an impossible machine.
    #[error("{0}")]
    Impossible(String),
}

const SHIPPED: [(&str, &str); 5] = [
    ("3a4000", include_str!("../../machines/3a4000.toml")),
    ("skylake-sp", include_str!("../../machines/skylake-sp.toml")),
    (
        "golden-cove",
        include_str!("../../machines/golden-cove.toml"),
    ),
    ("zen4", include_str!("../../machines/zen4.toml")),
    (
        "neoverse-v2",
        include_str!("../../machines/neoverse-v2.toml"),
    ),
];

/// The machines that come with Pagewise, by the name used to select them.
///
/// # Errors
/// Never with the built-in files, as a test checks.
pub fn shipped() -> Result<Vec<(&'static str, Machine)>, MachineError> {
    let parse = |(name, text): (&'static str, &str)| Ok((name, Machine::parse(text)?));
    SHIPPED.into_iter().map(parse).collect()
}

impl Machine {
    /// Reads a description.
    ///
    /// # Errors
    /// When it isn't valid TOML of this structure, or describes an impossible machine.
    pub fn parse(text: &str) -> Result<Self, MachineError> {
        let machine: Self = toml::from_str(text)?;
        machine.check()?;
        Ok(machine)
    }

    /// One of the built-in machines.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(known, _)| *known == name)?;
        Self::parse(text).ok()
    }

    /// The array of a level that stores a page size.
    #[must_use]
    pub fn array(&self, level: usize, size: PageSize) -> Option<&Array> {
        let holds = |array: &&Array| array.holds(size);
        self.levels.get(level)?.arrays.iter().find(holds)
    }

    /// Entries of the last level by page size, 0 where it stores none.
    #[must_use]
    pub fn last_entries(&self, size: PageSize) -> u32 {
        let last = self.levels.len().saturating_sub(1);
        self.array(last, size).map_or(0, |array| array.entries)
    }

    /// Binary logarithm of the small page's size.
    #[must_use]
    pub fn small_shift(&self) -> u32 {
        self.small_page.trailing_zeros()
    }

    /// Binary logarithm of the huge page's size.
    #[must_use]
    pub fn huge_shift(&self) -> u32 {
        self.huge_page.trailing_zeros()
    }

    /// Checks whether the machine can be simulated.
    ///
    /// # Errors
    /// Describes what is impossible about it.
    pub fn check(&self) -> Result<(), MachineError> {
        let fail = |what: String| Err(MachineError::Impossible(what));
        let (small, huge) = (self.small_page, self.huge_page);
        if !small.is_power_of_two() || !huge.is_power_of_two() || small >= huge || small < 4096 {
            return fail(format!(
                "small_page {small} and huge_page {huge} must be powers of two, at least 4096, the first smaller"
            ));
        }
        if huge / small > 1 << 18 || huge > 1 << 40 {
            return fail(format!(
                "huge_page {huge} is too large for small_page {small}"
            ));
        }
        if self.levels.is_empty() || self.levels.len() > LEVELS {
            return fail(format!("there must be 1 to {LEVELS} levels of TLBs"));
        }
        for level in &self.levels {
            for size in [PageSize::Small, PageSize::Huge] {
                if level
                    .arrays
                    .iter()
                    .filter(|array| array.holds(size))
                    .count()
                    > 1
                {
                    return fail(format!(
                        "level {}: {size:?} pages are held by more than one array",
                        level.name
                    ));
                }
            }
            for array in &level.arrays {
                if let Some(what) = array.fault() {
                    return fail(format!("level {}: {what}", level.name));
                }
                if array.pages_per_entry as u64 > huge / small {
                    return fail(format!(
                        "level {}: an entry of small pages is larger than a huge page",
                        level.name
                    ));
                }
            }
        }
        let last = self.levels.len() - 1;
        for size in [PageSize::Small, PageSize::Huge] {
            if self.array(last, size).is_none() {
                return fail(format!("the last level must hold {size:?} pages"));
            }
        }
        let walk = &self.walk;
        let bad = walk.caches.iter().find(|cache| {
            cache.remaining == 0
                || cache.remaining >= walk.levels
                || !(1..=MOST_WALK_ENTRIES).contains(&cache.entries)
        });
        if let Some(cache) = bad {
            return fail(format!(
                "walk cache with {} remaining references and {} entries: it must save at least one \
                 of {} references and have 1 to {MOST_WALK_ENTRIES} entries",
                cache.remaining, cache.entries, walk.levels
            ));
        }
        if walk.nested_entries > MOST_WALK_ENTRIES {
            return fail(format!(
                "nested_entries {}: at most {MOST_WALK_ENTRIES}",
                walk.nested_entries
            ));
        }
        if walk.levels > 5 || walk.levels == 1 {
            return fail(format!(
                "page tables of {} levels: expected 0, 2 to 5",
                walk.levels
            ));
        }
        let times = [walk.small_ns, walk.huge_ns, walk.reference_ns];
        if times.iter().any(|ns| !ns.is_finite() || *ns < 0.0) {
            return fail("costs must be finite and not negative".to_owned());
        }
        Ok(())
    }
}

impl Array {
    /// Whether it stores a page size.
    #[must_use]
    pub fn holds(&self, size: PageSize) -> bool {
        self.holds.iter().any(|held| match held {
            Size::Small => size == PageSize::Small,
            Size::Huge => size == PageSize::Huge,
        })
    }

    /// Number of sets.
    #[must_use]
    pub fn sets(&self) -> u32 {
        self.entries / self.ways.max(1)
    }

    fn fault(&self) -> Option<String> {
        let (entries, ways) = (self.entries, self.ways);
        if ways == 0 || entries == 0 || entries % ways != 0 || !self.sets().is_power_of_two() {
            return Some(format!(
                "{entries} entries in sets of {ways}: the number of sets must be a power of two"
            ));
        }
        if self.sets() > MOST_SETS {
            return Some(format!("{} sets: at most {MOST_SETS}", self.sets()));
        }
        if ways > 128 {
            return Some(format!("{ways} ways: at most 128"));
        }
        if self.replacement == Replacement::TreePlru && !ways.is_power_of_two() {
            return Some(format!(
                "tree-plru needs a power of two of ways, not {ways}"
            ));
        }
        if !self.pages_per_entry.is_power_of_two() {
            return Some(format!(
                "{} pages per entry: not a power of two",
                self.pages_per_entry
            ));
        }
        if self.pages_per_entry > MOST_NEIGHBOURS {
            return Some(format!(
                "{} pages per entry: at most {MOST_NEIGHBOURS}",
                self.pages_per_entry
            ));
        }
        None
    }
}
