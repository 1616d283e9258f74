//! What to change, what that is expected to bring, and what it costs.

use crate::units::{Bytes, Estimate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One setting that a launcher can apply without touching the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Setting {
    /// An environment variable.
    Env {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// One tunable inside `GLIBC_TUNABLES`; several are joined with colons.
    GlibcTunable {
        /// Its name, such as `glibc.malloc.trim_threshold`.
        name: String,
        /// Its value in bytes or as a number.
        value: String,
    },
    /// A library put before the program's own allocator by `LD_PRELOAD`.
    Preload {
        /// Path of the library.
        path: String,
    },
    /// Transparent huge pages for the process: `never` by `prctl(PR_SET_THP_DISABLE)`.
    Thp {
        /// `never`.
        mode: String,
    },
    /// An environment variable that is taken away.
    Unset {
        /// Its name.
        name: String,
    },
    /// NUMA nodes, as numactl(8) sets them for a program before it starts.
    Numa {
        /// Its options: `--cpunodebind=1 --membind=1`, `--interleave=all`, `--localalloc`.
        options: String,
    },
}

/// Settings that are tried or advised together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Settings(pub Vec<Setting>);

impl Settings {
    /// Whether they say on which NUMA nodes a program is: then it may run faster with the same
    /// faults, memory, system time and waits.
    #[must_use]
    pub fn place_on_nodes(&self) -> bool {
        let mut settings = self.0.iter();
        settings.any(|setting| matches!(setting, Setting::Numa { .. }))
    }

    /// Names of the variables that are taken away.
    pub fn unset(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|setting| match setting {
            Setting::Unset { name } => Some(name.as_str()),
            _ => None,
        })
    }

    /// These settings with the user's own beside them in the same variables, as a run with them has
    /// both: `own` tunables that these do not replace, and `own` preloaded libraries behind these.
    #[must_use]
    pub fn beside_own(&self, own: &BTreeMap<String, String>) -> Self {
        let has = |wanted: fn(&Setting) -> bool| self.0.iter().any(wanted);
        let replaced = |name: &str| {
            let mut settings = self.0.iter();
            settings
                .any(|one| matches!(one, Setting::GlibcTunable { name: ours, .. } if ours == name))
        };
        let tunables = own.iter().filter(|(name, _)| {
            has(|one| matches!(one, Setting::GlibcTunable { .. }))
                && name.starts_with("glibc.")
                && !replaced(name)
        });
        let tunables = tunables.map(|(name, value)| Setting::GlibcTunable {
            name: name.clone(),
            value: value.clone(),
        });
        let preloads = has(|one| matches!(one, Setting::Preload { .. }));
        let libraries = own.get("LD_PRELOAD").filter(|_| preloads);
        let libraries = libraries
            .into_iter()
            .flat_map(|list| list.split([':', ' ']));
        let libraries = libraries.filter(|path| !path.is_empty());
        let libraries = libraries.map(|path| Setting::Preload {
            path: path.to_owned(),
        });
        let libraries = libraries.filter(|library| !self.0.contains(library));
        Self(
            tunables
                .chain(self.0.iter().cloned())
                .chain(libraries)
                .collect(),
        )
    }

    /// The same with the user's own as these variables of the environment have them.
    #[must_use]
    pub fn beside_variables(&self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut own = BTreeMap::new();
        for (name, value) in variables {
            match name.as_str() {
                "GLIBC_TUNABLES" => {
                    let tunables = value.split(':').filter_map(|one| one.split_once('='));
                    own.extend(tunables.map(|(name, value)| (name.to_owned(), value.to_owned())));
                }
                "LD_PRELOAD" => {
                    own.insert(name, value);
                }
                _ => {}
            }
        }
        self.beside_own(&own)
    }

    /// The settings as variables (name and value): tunables and libraries are joined; a later value
    /// of the same variable replaces an earlier one.
    #[must_use]
    pub fn variables(&self) -> Vec<(String, String)> {
        let mut variables = Vec::new();
        for setting in &self.0 {
            match setting {
                Setting::Env { name, value } => put(&mut variables, name, value.clone()),
                Setting::GlibcTunable { name, value } => {
                    join(&mut variables, "GLIBC_TUNABLES", &format!("{name}={value}"));
                }
                Setting::Preload { path } => join(&mut variables, "LD_PRELOAD", path),
                Setting::Unset { .. } | Setting::Thp { .. } | Setting::Numa { .. } => {}
            }
        }
        variables
    }
}

fn put(variables: &mut Vec<(String, String)>, name: &str, value: String) {
    match variables.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => *known = value,
        None => variables.push((name.to_owned(), value)),
    }
}

fn join(variables: &mut Vec<(String, String)>, name: &str, item: &str) {
    let before = variables.iter().find(|(known, _)| known == name);
    let joined = match before {
        Some((_, value)) => format!("{value}:{item}"),
        None => item.to_owned(),
    };
    put(variables, name, joined);
}

/// How sure the rule is that nothing else gets worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Only memory use can change.
    Low,
    /// Some workloads get slower; prove it first.
    Medium,
    /// Behaviour changes; for experts.
    High,
}

/// One piece of advice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// Stable name of the rule that gave it.
    pub rule: String,
    /// Diagnoses that it resolves, by their ids, costliest first.
    pub cures: Vec<String>,
    /// One sentence: what to do.
    pub headline: String,
    /// Why this should help, in plain words with the numbers that led here.
    pub reason: String,
    /// Settings to apply; empty when the remedy is a change of code or of another program's
    /// configuration, described in `manual`.
    pub settings: Settings,
    /// What to do by hand, where settings alone do not suffice (a configuration file, a flag, a
    /// relink).
    pub manual: Option<String>,
    /// Predicted ratio of CPU time before to after: 1.25 means a quarter more work in the same CPU
    /// time. What is claimed is the interval; `--prove` tests it.
    pub predicted_speedup: Estimate,
    /// Faults expected to vanish, as a share of all (0 to 1).
    pub faults_avoided: f64,
    /// Memory that stays resident because of it, at most.
    pub rss_price: Bytes,
    /// Risk.
    pub risk: Risk,
    /// What can go wrong, in words.
    pub caveat: Option<String>,
}

impl Advice {
    /// A short display name: the rule's name without the allocator, `keep freed memory` for
    /// `glibc.keep-freed-memory`; for a preloaded allocator, its name with a verb. The arm that
    /// proves this advice has the same name.
    #[must_use]
    pub fn name(&self) -> String {
        let (family, own) = self.rule.split_once('.').unwrap_or(("", &self.rule));
        let own = own.replace('-', " ");
        match family {
            "preload" | "install" => format!("{family} {own}"),
            _ => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_tunables_and_libraries_stay_beside_ours() {
        let tunable = |name: &str, value: &str| Setting::GlibcTunable {
            name: format!("glibc.malloc.{name}"),
            value: value.to_owned(),
        };
        let preload = |path: &str| Setting::Preload {
            path: path.to_owned(),
        };
        let own = [
            ("glibc.malloc.perturb", "85"),
            ("glibc.malloc.top_pad", "1"),
            ("LD_PRELOAD", "/time.so /x.so"),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let own = BTreeMap::from(own);
        let beside = |settings: Vec<Setting>| Settings(settings).beside_own(&own).0;
        assert_eq!(
            beside(vec![tunable("top_pad", "9")]),
            [tunable("perturb", "85"), tunable("top_pad", "9")]
        );
        assert_eq!(
            beside(vec![preload("/x.so")]),
            [preload("/x.so"), preload("/time.so")]
        );
    }

    #[test]
    fn variables_of_the_user_stay_beside_ours() {
        let ours = Settings(vec![Setting::GlibcTunable {
            name: "glibc.malloc.trim_threshold".to_owned(),
            value: "8".to_owned(),
        }]);
        let own = [
            (
                "GLIBC_TUNABLES",
                "glibc.malloc.perturb=85:glibc.malloc.trim_threshold=1",
            ),
            ("LD_PRELOAD", "/time.so"),
            ("HOME", "/"),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let both = "glibc.malloc.perturb=85:glibc.malloc.trim_threshold=8";
        let expected = [("GLIBC_TUNABLES".to_owned(), both.to_owned())];
        assert_eq!(ours.beside_variables(own).variables(), expected);
    }

    #[test]
    fn names_are_for_people() {
        let named = |rule: &str| {
            let advice = Advice {
                rule: rule.to_owned(),
                cures: Vec::new(),
                headline: String::new(),
                reason: String::new(),
                settings: Settings::default(),
                manual: None,
                predicted_speedup: Estimate::exact(1.0),
                faults_avoided: 0.0,
                rss_price: Bytes(0),
                risk: Risk::Low,
                caveat: None,
            };
            advice.name()
        };
        assert_eq!(named("glibc.keep-freed-memory"), "keep freed memory");
        assert_eq!(named("preload.jemalloc"), "preload jemalloc");
        assert_eq!(named("plain"), "plain");
    }
}
