//! What `tune` tries, and which settings are worth their memory: recipes in data, successive
//! halving, the Pareto front.

mod front;
mod halving;
mod kept_gain;
mod placebo;
mod points;

pub use front::front;
pub use halving::survivors;
pub use kept_gain::Gain;
pub use placebo::placebo;
pub use points::{points, quieter_clock};

use pagewise_model::advice::{Setting, Settings};
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::units::Bytes;
use pagewise_rules::Template;
use pagewise_rules::{Content, Mistake, RuleError, RuleFile, rule_file};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// A kind of setting to try, possibly with several values.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Its place among all: the most promising has 1.
    rank: u32,
    /// Short name.
    pub name: String,
    /// An allocator to preload, to be located.
    pub library: Option<AllocatorKind>,
    /// Values of its size, most promising first; empty if it has none.
    #[serde(default, deserialize_with = "sizes")]
    pub values: Vec<Bytes>,
    /// Whether it works by avoiding faults.
    #[serde(default)]
    pub fewer_faults: bool,
    /// Its cost, in words.
    pub price: String,
    #[serde(default)]
    env: BTreeMap<String, Template>,
    #[serde(default)]
    tunables: BTreeMap<String, Template>,
    thp: Option<String>,
}

impl Recipe {
    /// Name with a value: `glibc thresholds 64M`.
    #[must_use]
    pub fn name_at(&self, value: Option<Bytes>) -> String {
        match value {
            Some(value) => format!("{} {}", self.name, short_size(value)),
            None => self.name.clone(),
        }
    }

    /// The settings at `value`, with `library` found at that path.
    #[must_use]
    pub fn settings(&self, value: Option<Bytes>, library: Option<&str>) -> Settings {
        let number = value.map(|value| value.0.to_string()).unwrap_or_default();
        let filled = |text: &Template| text.fill(&[("value", number.clone())]);
        let tunables = self
            .tunables
            .iter()
            .map(|(name, text)| Setting::GlibcTunable {
                name: name.clone(),
                value: filled(text),
            });
        let variables = self.env.iter().map(|(name, text)| Setting::Env {
            name: name.clone(),
            value: filled(text),
        });
        let preload = library.map(|path| Setting::Preload {
            path: path.to_owned(),
        });
        let thp = self.thp.clone().map(|mode| Setting::Thp { mode });
        Settings(
            preload
                .into_iter()
                .chain(tunables)
                .chain(variables)
                .chain(thp)
                .collect(),
        )
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipes {
    recipe: Vec<Recipe>,
}

/// The recipes of a family of allocators, next to what else is known of it.
#[derive(Deserialize)]
struct OfFamily {
    #[serde(default)]
    recipe: Vec<Recipe>,
}

impl Content for OfFamily {
    fn check(&self) -> Result<(), Mistake> {
        check(&self.recipe)
    }
}

impl Content for Recipes {
    fn check(&self) -> Result<(), Mistake> {
        check(&self.recipe)
    }
}

fn check(recipes: &[Recipe]) -> Result<(), Mistake> {
    for recipe in recipes {
        let given: &[&str] = match recipe.values.is_empty() {
            true => &[],
            false => &["value"],
        };
        let mut texts = recipe.env.values().chain(recipe.tunables.values());
        texts.try_for_each(|text| text.check(given))?;
    }
    Ok(())
}

const SHIPPED: RuleFile = rule_file!("tune.toml");

/// The built-in recipes, most promising first.
///
/// # Errors
/// [`RuleError`] if the list has a mistake; a test checks that it has none.
pub fn recipes() -> Result<Vec<Recipe>, RuleError> {
    let families = pagewise_families::sections::<OfFamily>()?.into_iter();
    let mut all: Vec<Recipe> = families.flat_map(|family| family.recipe).collect();
    all.extend(SHIPPED.read::<Recipes>()?.recipe);
    all.sort_by_key(|recipe| recipe.rank);
    Ok(all)
}

fn sizes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Bytes>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let size = |text: String| {
        text.parse()
            .map_err(|_| D::Error::custom(format!("'{text}' is not a size such as 64M")))
    };
    texts.into_iter().map(size).collect()
}

/// `64M`: the inverse of parsing [`Bytes`], exact.
fn short_size(size: Bytes) -> String {
    let units = [(1u64 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    match units
        .iter()
        .find(|(unit, _)| size.0 > 0 && size.0.is_multiple_of(*unit))
    {
        Some((unit, name)) => format!("{}{name}", size.0 / unit),
        None => size.0.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipes_are_sound() {
        let recipes = recipes().unwrap();
        let names: std::collections::BTreeSet<_> = recipes.iter().map(|r| &r.name).collect();
        assert_eq!(names.len(), recipes.len(), "names are used as keys");
        for recipe in &recipes {
            let texts = recipe.env.values().chain(recipe.tunables.values());
            let used = texts.flat_map(Template::names).any(|name| name == "value");
            assert_eq!(used, !recipe.values.is_empty(), "{}", recipe.name);
            let value = recipe.values.first().copied();
            let library = recipe.library.as_ref().map(|_| "/x.so");
            assert!(
                !recipe.settings(value, library).0.is_empty(),
                "{}",
                recipe.name
            );
        }
    }

    #[test]
    fn a_value_is_put_into_each_place() {
        let recipes = recipes().unwrap();
        let both = recipes[0].settings(Some(Bytes::MIB), None);
        let tunable = |name: &str| Setting::GlibcTunable {
            name: format!("glibc.malloc.{name}"),
            value: "1048576".to_owned(),
        };
        assert_eq!(
            both.0,
            [tunable("mmap_threshold"), tunable("trim_threshold")]
        );
        assert_eq!(
            recipes[0].name_at(Some(Bytes(192 << 20))),
            "glibc thresholds 192M"
        );
    }
}
