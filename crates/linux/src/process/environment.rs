//! A program's environment under given settings.

use super::Error;
use super::nodes::Wish;
use pagewise_model::advice::{Setting, Settings};
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// An environment, ordered by name so that two runs get the same bytes on their stack.
pub type Environment = BTreeMap<OsString, OsString>;

/// `current` with `settings` applied: variables replaced or taken away, tunables joined with those already in
/// `GLIBC_TUNABLES`, libraries put before those already in `LD_PRELOAD`.
///
/// # Errors
/// [`Error::InvalidSetting`] for a name or value that no environment can carry, and for an
/// unknown huge-page mode.
pub fn with_settings(mut current: Environment, settings: &Settings) -> Result<Environment, Error> {
    let mut libraries = Vec::new();
    for setting in &settings.0 {
        check(setting)?;
        match setting {
            Setting::Env { name, value } => {
                current.insert(name.into(), value.into());
            }
            Setting::Unset { name } => {
                current.remove(OsStr::new(name));
            }
            Setting::GlibcTunable { name, value } => join_tunable(&mut current, name, value),
            Setting::Preload { path } => libraries.push(path.as_str()),
            Setting::Thp { .. } | Setting::Numa { .. } => {}
        }
    }
    preload(&mut current, &libraries);
    Ok(current)
}

fn check(setting: &Setting) -> Result<(), Error> {
    let (shown, problem) = match setting {
        Setting::Env { name, value } => (name, variable_problem(name, value)),
        Setting::Unset { name } => (name, variable_problem(name, "")),
        Setting::GlibcTunable { name, value } => (name, tunable_problem(name, value)),
        Setting::Preload { path } => (path, library_problem(path)),
        Setting::Thp { mode } => (
            mode,
            (mode != "never" && mode != "advised")
                .then_some("a launcher can set the huge-page modes 'never' and 'advised' only"),
        ),
        Setting::Numa { options } => (options, Wish::parse(options).err()),
    };
    problem.map_or(Ok(()), |problem| {
        Err(Error::InvalidSetting {
            setting: shown.clone(),
            problem,
        })
    })
}

fn variable_problem(name: &str, value: &str) -> Option<&'static str> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Some("a variable's name must not be empty or contain '=' or NUL");
    }
    value
        .contains('\0')
        .then_some("a variable's value must not contain NUL")
}

fn tunable_problem(name: &str, value: &str) -> Option<&'static str> {
    let bad = |text: &str| text.is_empty() || text.contains([':', '=', '\0']);
    (bad(name) || bad(value))
        .then_some("a tunable's name and value must not be empty or contain ':', '=' or NUL")
}

fn library_problem(path: &str) -> Option<&'static str> {
    (path.is_empty() || path.contains([':', ' ', '\0']))
        .then_some("LD_PRELOAD cannot carry an empty path or one with a colon, a blank or NUL")
}

fn join_tunable(environment: &mut Environment, name: &str, value: &str) {
    let before = environment
        .get(OsStr::new("GLIBC_TUNABLES"))
        .cloned()
        .unwrap_or_default();
    let others = before
        .as_bytes()
        .split(|byte| *byte == b':')
        .filter(|tunable| {
            let key = tunable
                .split(|byte| *byte == b'=')
                .next()
                .unwrap_or_default();
            !key.is_empty() && key != name.as_bytes()
        });
    let mut joined = others.collect::<Vec<_>>().join(&b':');
    if !joined.is_empty() {
        joined.push(b':');
    }
    joined.extend_from_slice(format!("{name}={value}").as_bytes());
    environment.insert("GLIBC_TUNABLES".into(), OsString::from_vec(joined));
}

fn preload(environment: &mut Environment, libraries: &[&str]) {
    if libraries.is_empty() {
        return;
    }
    let before = environment.get(OsStr::new("LD_PRELOAD"));
    let before = before.map_or(&[][..], |old| old.as_bytes());
    let others = before.split(|byte| matches!(byte, b':' | b' '));
    let others = others.filter(|path| {
        let is_ours = libraries.iter().any(|ours| ours.as_bytes() == *path);
        !path.is_empty() && !is_ours
    });
    let ours = libraries.iter().map(|path| path.as_bytes());
    let joined = ours.chain(others).collect::<Vec<_>>().join(&b':');
    environment.insert("LD_PRELOAD".into(), OsString::from_vec(joined));
}

/// The environment as `execve(2)` takes it. Names and values from our own environment contain no
/// NUL, and [`with_settings`] lets none in; if there is one nevertheless, it is an error.
///
/// # Errors
/// [`Error::Nul`].
pub(super) fn to_c(environment: &Environment) -> Result<Vec<CString>, Error> {
    environment
        .iter()
        .map(|(name, value)| {
            let line = [name.as_bytes(), b"=", value.as_bytes()].concat();
            CString::new(line).map_err(|_| Error::Nul { text: name.clone() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tunable(name: &str, value: &str) -> Setting {
        Setting::GlibcTunable {
            name: name.into(),
            value: value.into(),
        }
    }

    fn applied(before: &[(&str, &str)], settings: Vec<Setting>) -> Environment {
        let current = before
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        with_settings(current, &Settings(settings)).unwrap()
    }

    #[test]
    fn tunables_join_those_in_force_and_replace_their_own() {
        let after = applied(
            &[(
                "GLIBC_TUNABLES",
                "glibc.malloc.top_pad=1:glibc.malloc.arena_max=2",
            )],
            vec![
                tunable("glibc.malloc.top_pad", "9"),
                tunable("glibc.malloc.hugetlb", "1"),
            ],
        );
        assert_eq!(
            after[OsStr::new("GLIBC_TUNABLES")],
            "glibc.malloc.arena_max=2:glibc.malloc.top_pad=9:glibc.malloc.hugetlb=1"
        );
    }

    #[test]
    fn libraries_go_before_those_in_force() {
        let library = |path: &str| Setting::Preload { path: path.into() };
        let after = applied(
            &[("LD_PRELOAD", "/c.so")],
            vec![library("/a.so"), library("/b.so")],
        );
        assert_eq!(after[OsStr::new("LD_PRELOAD")], "/a.so:/b.so:/c.so");
    }

    #[test]
    fn what_no_environment_can_carry_is_an_error() {
        for setting in [
            Setting::Env {
                name: "A=B".into(),
                value: String::new(),
            },
            Setting::Env {
                name: "A".into(),
                value: "\0".into(),
            },
            tunable("glibc.malloc.top_pad", "1:glibc.malloc.check=3"),
            Setting::Preload {
                path: "/my libs/a.so".into(),
            },
            Setting::Thp {
                mode: "always".into(),
            },
            Setting::Numa {
                options: "--preferred=1".into(),
            },
        ] {
            let result = with_settings(Environment::new(), &Settings(vec![setting.clone()]));
            assert!(
                matches!(result, Err(Error::InvalidSetting { .. })),
                "{setting:?}"
            );
        }
    }
}
