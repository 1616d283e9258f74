//! What `tune` tries, and which of it is worth its memory: recipes in data, successive halving,
//! the Pareto front.

mod front;
mod halving;

pub use front::front;
pub use halving::survivors;

use pagewise_model::advice::{Setting, Settings};
use pagewise_model::units::Bytes;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Why the recipes cannot be used. They are compiled in, so a test meets these first.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not TOML, or not of this shape.
    #[error("the list of settings to try is malformed")]
    Malformed(#[from] toml::de::Error),
    /// A size that is none.
    #[error("recipe '{recipe}' has the value '{value}', which is no size like 64M")]
    Value {
        /// Recipe.
        recipe: String,
        /// Text.
        value: String,
    },
}

/// A kind of setting to try, perhaps at several values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Short name.
    pub name: String,
    /// File name of a library to preload, to be looked up.
    pub library: Option<String>,
    /// Values of its size, most promising first; empty when it has none.
    pub values: Vec<Bytes>,
    /// Whether it works by avoiding faults.
    pub fewer_faults: bool,
    /// What it costs, in words.
    pub price: String,
    env: BTreeMap<String, String>,
    tunables: BTreeMap<String, String>,
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
        let filled = |text: &String| text.replace("{value}", &number);
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
struct Document {
    recipe: Vec<Raw>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: String,
    library: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    tunables: BTreeMap<String, String>,
    thp: Option<String>,
    #[serde(default)]
    values: Vec<String>,
    #[serde(default)]
    fewer_faults: bool,
    price: String,
}

/// The recipes that Pagewise knows, most promising first.
///
/// # Errors
/// When the compiled-in list is malformed.
pub fn recipes() -> Result<Vec<Recipe>, Error> {
    let document: Document = toml::from_str(include_str!("../../rules/tune.toml"))?;
    document.recipe.into_iter().map(Recipe::try_from).collect()
}

impl TryFrom<Raw> for Recipe {
    type Error = Error;

    fn try_from(raw: Raw) -> Result<Self, Error> {
        let size = |value: &String| {
            parse_size(value).ok_or_else(|| Error::Value {
                recipe: raw.name.clone(),
                value: value.clone(),
            })
        };
        let values = raw.values.iter().map(size).collect::<Result<_, _>>()?;
        Ok(Self {
            values,
            name: raw.name,
            library: raw.library,
            fewer_faults: raw.fewer_faults,
            price: raw.price,
            env: raw.env,
            tunables: raw.tunables,
            thp: raw.thp,
        })
    }
}

/// `64M`, `512K`, `1G`, `4096`: binary units. `None` for anything else.
#[must_use]
pub fn parse_size(text: &str) -> Option<Bytes> {
    let text = text
        .trim()
        .trim_end_matches("iB")
        .trim_end_matches('B')
        .trim_end();
    let (digits, unit) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 10),
        (at, 'm' | 'M') => (&text[..at], 20),
        (at, 'g' | 'G') => (&text[..at], 30),
        (at, 't' | 'T') => (&text[..at], 40),
        _ => (text, 0),
    };
    let number: u64 = digits.trim_end().parse().ok()?;
    number.checked_mul(1 << unit).map(Bytes)
}

/// `64M`: the inverse of [`parse_size`], exact.
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
            let uses = |text: &String| text.contains("{value}");
            let used = recipe
                .env
                .values()
                .chain(recipe.tunables.values())
                .any(uses);
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

    #[test]
    fn sizes_are_read_and_nonsense_is_refused() {
        assert_eq!(parse_size("64M"), Some(Bytes(64 << 20)));
        assert_eq!(parse_size("1 GiB"), Some(Bytes::GIB));
        assert_eq!(parse_size("4096"), Some(Bytes(4096)));
        for bad in ["", "M", "-1M", "1.5G", "99999999999999T", "64X", "é"] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }
}
