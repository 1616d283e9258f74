//! Whether a rule applies: to a symptom, an allocator, a machine.

use super::Surroundings;
use super::case::{Case, Owner};
use super::rules::{Linkage, OWN_LIBRARY, Rule, SettingTemplate};
use super::symptom::Symptom;
use pagewise_model::advice::Setting;
use pagewise_model::allocator::{Allocator, AllocatorKind};
use pagewise_model::histogram::Histogram;
use serde::Deserialize;

impl Rule {
    /// Whether a launcher has to set a policy of NUMA nodes for it.
    pub(super) fn sets_nodes(&self) -> bool {
        let is_of_nodes = |one: &SettingTemplate| matches!(one.setting, Setting::Numa { .. });
        self.settings.iter().any(is_of_nodes)
    }

    /// Whether another allocator takes the place of the current one.
    fn preloads(&self) -> bool {
        let is_library = |one: &SettingTemplate| matches!(one.setting, Setting::Preload { .. });
        self.settings.iter().any(is_library)
    }

    /// The allocator to which this rule would apply, if it matches this symptom. Rules that need
    /// none give `Some(None)`.
    pub(super) fn fits<'a>(
        &self,
        symptom: &Case,
        allocators: &'a [Allocator],
        around: &Surroundings,
    ) -> Option<Option<&'a Allocator>> {
        let wanted = self.symptoms.contains(&symptom.kind);
        let has = |kind: &AllocatorKind| allocators.iter().any(|one| one.kind == *kind);
        let is_overridden = [Owner::Fixed, Owner::Trimmed].contains(&symptom.owner);
        let fits = wanted
            && (is_overridden || !self.overridden)
            && self.fits_blocks(symptom)
            && self.fits_libraries(around)
            && !self.without_runtime.iter().any(has);
        if !fits {
            return None;
        }
        match self.allocator.as_deref() {
            None => Some(None),
            Some("none") => (symptom.owner == Owner::Program).then_some(None),
            Some("bundled") => {
                let is_known = allocators.iter().any(|one| one.inside.is_some());
                (symptom.owner == Owner::Bundled(None) && !is_known).then_some(None)
            }
            Some("fixed") => (symptom.owner == Owner::Fixed).then_some(None),
            Some("trimmed") => (symptom.owner == Owner::Trimmed).then_some(None),
            Some("threads") => (symptom.owner == Owner::Threads).then_some(None),
            Some("unseen") => (symptom.owner == Owner::Unknown).then_some(None),
            Some(name) => {
                let kind = kind_named(name)?;
                let fitting = allocators.iter().find(|one| {
                    self.fits_allocator(kind, one)
                        && self.fits_settings(one)
                        && is_at_hand(one, symptom, allocators)
                })?;
                // A setting that may not reach the memory is not a fix.
                let reaches = match symptom.owner {
                    Owner::Allocator => !has_own_heap(kind),
                    Owner::Fixed | Owner::Trimmed => self.preloads() && !has_own_heap(kind),
                    Owner::Presumed => reaches(kind, allocators),
                    Owner::Runtime(owner) => owner == kind,
                    // Of several in one file, the settings of each.
                    Owner::Bundled(owner) => owner.is_none_or(|owner| owner == kind),
                    Owner::Threads | Owner::Program | Owner::Unknown => false,
                };
                reaches.then_some(Some(fitting))
            }
        }
    }

    fn fits_blocks(&self, symptom: &Case) -> bool {
        let largest = symptom.sizes.max();
        let below = |bound: Option<u64>| bound.is_none_or(|bound| largest <= bound);
        let in_threads = !symptom.in_threads || below(self.largest_block_in_threads);
        let above = self
            .smallest_block_in_threads
            .is_none_or(|bound| symptom.in_threads && largest > bound);
        let mostly = self
            .mostly_within
            .is_none_or(|bound| is_mostly_within(&symptom.sizes, bound));
        below(self.largest_block) && in_threads && above && mostly
    }

    fn fits_libraries(&self, around: &Surroundings) -> bool {
        let has = |name: &String| self.path_of(name, around).is_some();
        self.library.iter().all(has) && !self.without_library.iter().any(has)
    }

    /// Path of an installed library.
    pub(super) fn path_of<'a>(&self, name: &str, around: &'a Surroundings) -> Option<&'a str> {
        if name == OWN_LIBRARY {
            return around.own_library.as_deref();
        }
        let kind = kind_named(name)?;
        around
            .libraries
            .iter()
            .find(|(one, _)| *one == kind)
            .map(|(_, path)| path.as_str())
    }

    fn fits_allocator(&self, kind: AllocatorKind, allocator: &Allocator) -> bool {
        let linkage = if allocator.is_static {
            Linkage::Static
        } else {
            Linkage::Dynamic
        };
        allocator.kind == kind
            && self.linkage.is_none_or(|wanted| wanted == linkage)
            && self.fits_version(allocator.version.as_deref())
    }

    /// Settings in a list, such as `GODEBUG=a=1,madvdontneed=0`, are identified by their names.
    fn fits_settings(&self, allocator: &Allocator) -> bool {
        let has = |wanted: &String| {
            let mut settings = allocator.settings.iter();
            settings.any(|(name, value)| {
                let mut listed = value.split([',', ' ']);
                name == wanted || listed.any(|one| one.split('=').next() == Some(wanted))
            })
        };
        self.when_set.iter().all(has) && !self.unless_set.iter().any(has)
    }

    /// An unknown version counts as a current one.
    fn fits_version(&self, version: Option<&str>) -> bool {
        let version = version.and_then(numbers);
        let bound = |text: &Option<String>| text.as_deref().and_then(numbers);
        match version {
            None => self.before_version.is_none(),
            Some(version) => {
                bound(&self.from_version).is_none_or(|from| version >= from)
                    && bound(&self.before_version).is_none_or(|before| version < before)
            }
        }
    }
}

/// Whether an allocator may be the one whose memory this is: one inside the program or a library does not
/// serve `malloc` where another one does, and is tried.
fn is_at_hand(one: &Allocator, symptom: &Case, allocators: &[Allocator]) -> bool {
    let serves_malloc = |other: &Allocator| {
        let family = pagewise_families::family(other.kind);
        other.inside.is_none() && family.is_none_or(|family| family.heap.is_none())
    };
    match symptom.owner {
        Owner::Bundled(_) => one.inside.is_some(),
        _ if symptom.kind == Symptom::Runtime => true,
        _ => one.inside.is_none() || !allocators.iter().any(serves_malloc),
    }
}

/// Whether this allocator's settings reach memory outside `malloc`: a language runtime with its own
/// heap maps it without `malloc`.
fn reaches(kind: AllocatorKind, allocators: &[Allocator]) -> bool {
    has_own_heap(kind) || !allocators.iter().any(|one| has_own_heap(one.kind))
}

pub(super) fn has_own_heap(kind: AllocatorKind) -> bool {
    let heap = pagewise_families::family(kind).and_then(|family| family.heap.as_ref());
    heap.is_some_and(|heap| heap.apart)
}

/// Whether stretches of at most `bound` bytes are half of all bytes; true if no sizes are known.
fn is_mostly_within(sizes: &Histogram, bound: u64) -> bool {
    let bytes = |(start, end, count): (u64, u64, u64)| {
        let middle = start as f64 / 2.0 + end as f64 / 2.0;
        (start <= bound, middle * count as f64)
    };
    let (within, beyond) =
        sizes
            .buckets()
            .map(bytes)
            .fold((0.0, 0.0), |(within, beyond), (fits, bytes)| match fits {
                true => (within + bytes, beyond),
                false => (within, beyond + bytes),
            });
    within >= beyond
}

pub(super) fn kind_named(name: &str) -> Option<AllocatorKind> {
    use serde::de::IntoDeserializer;
    let name: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
        name.into_deserializer();
    AllocatorKind::deserialize(name).ok()
}

/// `2.36` as comparable numbers; anything after the digits and dots is ignored.
pub(super) fn numbers(version: &str) -> Option<Vec<u32>> {
    let digits = version
        .split(|c: char| !(c.is_ascii_digit() || c == '.'))
        .next()?;
    digits.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rules::Rules;
    use super::*;
    use pagewise_model::units::Estimate;

    #[test]
    fn blocks_larger_than_pythons_arenas_are_not_laid_to_them() {
        let rules = Rules::shipped().expect("shipped rules parse");
        let rule = rules.0.iter().find(|rule| rule.id == "python.keep-objects");
        let rule = rule.expect("a shipped rule");
        let fits = |sizes: &[(u64, u64)]| {
            let mut all = Histogram::default();
            for &(size, times) in sizes {
                all.record_many(size, times);
            }
            rule.fits_blocks(&Case {
                kind: Symptom::ChurnMmap,
                faults: 1e6,
                share: Estimate::exact(0.9),
                cost: Estimate::exact(0.5),
                sizes: all,
                in_threads: false,
                owner: Owner::Runtime(AllocatorKind::Cpython),
            })
        };
        assert!(fits(&[(1 << 20, 100)]));
        assert!(fits(&[(1 << 20, 100), (16 << 20, 2)]));
        // Buffers of 64 MiB among some arenas.
        assert!(!fits(&[(64 << 20, 124), (1 << 20, 30)]));
    }

    #[test]
    fn versions_compare_as_numbers() {
        assert!(numbers("2.4") < numbers("2.36"));
        assert_eq!(numbers("2.36-9+deb12u10"), numbers("2.36"));
        assert_eq!(numbers("unknown"), None);
    }
}
