//! Tries allocator and huge-page settings on the command itself: finds the best, the smallest value
//! that suffices, and the memory that the gain costs.
//!
//! Settings are tried in the target program because state matters: one early allocation can change
//! glibc's behaviour for the rest of a run.

mod search;

pub use search::search;

use crate::experiment::Candidate;
use anyhow::{Result, anyhow};
use pagewise_compare::tune::{Recipe, recipes};
use pagewise_linux::process::library;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::units::Bytes;
use std::path::Path;

/// A setting to try, with the recipe that it came from.
#[derive(Clone, Debug)]
pub struct Trial {
    candidate: Candidate,
    recipe: Recipe,
    value: Option<Bytes>,
    library: Option<String>,
}

/// Every setting whose name contains one of the texts in `only` (all if it is empty), and notes on
/// missing libraries.
///
/// # Errors
/// If nothing is left to try.
pub fn trials(only: &[String]) -> Result<(Vec<Trial>, Vec<String>)> {
    let mut absent: Vec<String> = Vec::new();
    let mut trials = Vec::new();
    for recipe in recipes()? {
        let library = match &recipe.library {
            None => None,
            Some(kind) => match library::installed(Path::new("/"), *kind) {
                Some(path) => Some(path.to_string_lossy().into_owned()),
                None => {
                    let note = format!("{} is not installed, so it was not tried.", name_of(*kind));
                    if !absent.contains(&note) {
                        absent.push(note);
                    }
                    continue;
                }
            },
        };
        let values = recipe.values.iter().copied().map(Some);
        let values: Vec<Option<Bytes>> = if recipe.values.is_empty() {
            vec![None]
        } else {
            values.collect()
        };
        let tried = values
            .into_iter()
            .map(|value| Trial::new(&recipe, value, library.clone()));
        trials.extend(tried.enumerate());
    }
    // The first value of each recipe before the second of any.
    trials.sort_by_key(|(pass, _)| *pass);
    let mut trials: Vec<Trial> = trials.into_iter().map(|(_, trial)| trial).collect();
    trials.retain(|trial| {
        only.is_empty()
            || only
                .iter()
                .any(|text| trial.candidate.name.contains(text.as_str()))
    });
    if trials.is_empty() {
        let known = recipes()?
            .into_iter()
            .map(|recipe| recipe.name)
            .collect::<Vec<_>>()
            .join(", ");
        return Err(anyhow!("no setting matches --only; there are: {known}"));
    }
    Ok((trials, absent))
}

/// The displayed name of an allocator.
pub(crate) fn name_of(kind: AllocatorKind) -> &'static str {
    pagewise_families::family(kind).map_or("this allocator", |family| &family.name)
}

impl Trial {
    fn new(recipe: &Recipe, value: Option<Bytes>, library: Option<String>) -> Self {
        let candidate = Candidate {
            name: recipe.name_at(value),
            settings: recipe.settings(value, library.as_deref()),
            fewer_faults: recipe.fewer_faults,
            ..Candidate::default()
        };
        Self {
            candidate,
            recipe: recipe.clone(),
            value,
            library,
        }
    }

    /// The same recipe at another value.
    fn at(&self, value: Bytes) -> Self {
        Self::new(&self.recipe, Some(value), self.library.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glibc_recipes_are_tried_at_each_value_and_filters_choose() {
        let (trials, _) = trials(&["glibc thresholds".to_owned()]).unwrap();
        let names: Vec<&str> = trials
            .iter()
            .map(|trial| trial.candidate.name.as_str())
            .collect();
        assert_eq!(names[0], "glibc thresholds 64M");
        assert_eq!(names.len(), 4);
        assert_eq!(
            trials[0].at(Bytes(512 << 10)).candidate.name,
            "glibc thresholds 512K"
        );
        assert!(super::trials(&["no such".to_owned()]).is_err());
    }
}
