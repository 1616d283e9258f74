//! Variables that one side sets on its command line and the other does not.

use std::collections::BTreeMap;

/// The difference in a sentence; the effect of such a variable is part of what is compared.
pub(super) fn difference(old: &[String], new: &[String]) -> Option<String> {
    let (old, new) = (variables(old), variables(new));
    let mut parts = Vec::new();
    for (name, value) in &old {
        match new.get(name) {
            None => parts.push(format!("{name}={value} on the old side alone")),
            Some(other) if other != value => {
                parts.push(format!(
                    "{name}={value} on the old side, {other} on the new"
                ));
            }
            Some(_) => {}
        }
    }
    let only_new = new.iter().filter(|(name, _)| !old.contains_key(*name));
    parts.extend(only_new.map(|(name, value)| format!("{name}={value} on the new side alone")));
    (!parts.is_empty()).then(|| {
        format!(
            "The sides differ in their environment: {}. What that changes counts as growth.",
            parts.join("; ")
        )
    })
}

/// What `env` or a shell sets before the program.
fn variables(command: &[String]) -> BTreeMap<&str, &str> {
    match command {
        [shell, option, script, ..] if option == "-c" && is_shell(shell) => of_script(script),
        words => assignments(words.iter().map(String::as_str)).collect(),
    }
}

/// What a script exports at its start, and what it sets for its first program. What it sets for
/// itself alone (`i=0; …`) reaches no program.
fn of_script(script: &str) -> BTreeMap<&str, &str> {
    let mut found = BTreeMap::new();
    for command in script.split([';', '&', '|', '\n']) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let exports = words.first() == Some(&"export");
        let set: Vec<_> = assignments(words.iter().copied()).collect();
        let is_of_shell = !exports && set.len() == words.len();
        found.extend(set.into_iter().filter(|_| !is_of_shell));
        if !exports && !is_of_shell {
            break;
        }
    }
    found
}

fn assignments<'a>(
    words: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let is_env = |word: &&str| matches!(word.rsplit('/').next(), Some("env" | "exec" | "export"));
    words.skip_while(is_env).map_while(assignment)
}

fn is_shell(word: &str) -> bool {
    matches!(
        word.rsplit('/').next(),
        Some("sh" | "bash" | "dash" | "zsh")
    )
}

/// A name and its value, where a word is an assignment.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_one = !name.is_empty()
        && name.chars().all(is_name)
        && !name.starts_with(|c: char| c.is_ascii_digit());
    is_one.then_some((name, value.trim_matches(['"', '\''])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differing(old: &[&str], new: &[&str]) -> Option<String> {
        let words =
            |side: &[&str]| -> Vec<String> { side.iter().map(|&word| word.to_owned()).collect() };
        difference(&words(old), &words(new))
    }

    #[test]
    fn a_variable_on_one_side_is_named() {
        let found = differing(&["./a", "x=1"], &["env", "MALLOC_ARENA_MAX=1", "./a"]).unwrap();
        assert!(
            found.contains("MALLOC_ARENA_MAX=1 on the new side alone"),
            "{found}"
        );
        assert!(!found.contains("x=1"), "{found}");
        let found = differing(&["sh", "-c", "A=1 B='2' ./a"], &["sh", "-c", "A=2 ./a"]).unwrap();
        assert!(
            found.contains("A=1 on the old side, 2 on the new"),
            "{found}"
        );
        assert!(found.contains("B=2 on the old side alone"), "{found}");
        assert_eq!(
            differing(&["env", "A=1", "./old"], &["sh", "-c", "A=1 ./new"]),
            None
        );
    }

    #[test]
    fn what_a_script_sets_for_itself_is_no_environment() {
        let script = "i=0; while [ $i -lt 9 ]; do i=$((i + 1)); done; A=1 ./a";
        assert_eq!(differing(&["./a"], &["sh", "-c", script]), None);
        let found = differing(&["./a"], &["sh", "-c", "n=1; export A=1 B=2; ./a C=3"]).unwrap();
        assert!(
            found.contains("A=1 on the new side alone; B=2 on the new"),
            "{found}"
        );
        assert!(!found.contains("n=1") && !found.contains("C=3"), "{found}");
    }
}
