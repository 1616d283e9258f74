//! Settings without any effect, to distinguish a fix from luck.

use pagewise_model::advice::{Setting, Settings};

/// Variables as long as those of `settings`, under names that no program reads. `None` if the
/// settings use more than variables.
#[must_use]
pub fn placebo(settings: &Settings) -> Option<Settings> {
    let unread = |name: &str| {
        let mut name = name.to_owned();
        name.pop()
            .map(|last| name + if last == 'Z' { "Y" } else { "Z" })
    };
    let variables = settings.variables();
    let only_variables = settings
        .0
        .iter()
        .all(|setting| matches!(setting, Setting::Env { .. } | Setting::GlibcTunable { .. }));
    let renamed = variables
        .into_iter()
        .map(|(name, value)| unread(&name).map(|name| Setting::Env { name, value }));
    only_variables
        .then(|| renamed.collect::<Option<Vec<_>>>().map(Settings))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placebo_has_the_same_length_and_no_meaning() {
        let tunable = |name: &str| Setting::GlibcTunable {
            name: name.to_owned(),
            value: "1".to_owned(),
        };
        let settings = Settings(vec![tunable("a"), tunable("b")]);
        let expected = Setting::Env {
            name: "GLIBC_TUNABLEZ".to_owned(),
            value: "a=1:b=1".to_owned(),
        };
        assert_eq!(placebo(&settings), Some(Settings(vec![expected])));
        let library = Settings(vec![Setting::Preload {
            path: "/x.so".to_owned(),
        }]);
        assert_eq!(placebo(&library), None);
    }
}
