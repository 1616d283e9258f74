//! What leaves a host: command lines, paths and values of environment variables only on request.
//!
//! What is left out is replaced by the start of its SHA-256, without a key: equal things stay equal
//! on all hosts, and who knows a path or a value can look for it. Whoever guesses one can check the
//! guess, so this hides names from readers and is no encryption.

use super::identity::{hexadecimal, of_text};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::borrow::Cow;

/// What is written as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Include {
    /// Command lines.
    pub commands: bool,
    /// Paths, also inside sentences.
    pub paths: bool,
    /// Values of environment variables.
    pub environment: bool,
}

impl Include {
    /// A command line, if it is included.
    #[must_use]
    pub fn command(self, command: &[String]) -> Option<String> {
        (self.commands && !command.is_empty()).then(|| command.join(" "))
    }

    /// The value of a setting of the host or of the program.
    #[must_use]
    pub fn setting<'a>(self, name: &str, value: &'a str) -> Cow<'a, str> {
        match name.starts_with("environment.") && !self.environment {
            true => Cow::Owned(hidden(value)),
            false => self.sentence(value),
        }
    }

    /// A text with the paths in it replaced.
    #[must_use]
    pub fn sentence(self, text: &str) -> Cow<'_, str> {
        if self.paths || !text.contains('/') {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = start_of_path(rest) {
            let path = &rest[start..];
            let end = path.find(ends_path).unwrap_or(path.len());
            // A full stop or a comma after a path belongs to the sentence.
            let end = path[..end].trim_end_matches(['.', ',', ':', ';']).len();
            out.push_str(&rest[..start]);
            out.push_str(&hidden(&path[..end]));
            rest = &path[end..];
        }
        out.push_str(rest);
        Cow::Owned(out)
    }
}

/// Where the first absolute path starts: a slash that nothing but a blank, a quotation mark or a
/// bracket precedes, followed by a name.
fn start_of_path(text: &str) -> Option<usize> {
    text.match_indices('/').map(|(at, _)| at).find(|&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + 1..].chars().next();
        before.is_none_or(|c| c.is_whitespace() || "\"'`([{=:,<".contains(c))
            && after.is_some_and(|c| c.is_alphanumeric() || "._-~/@+".contains(c))
    })
}

fn ends_path(c: char) -> bool {
    c.is_whitespace() || "\"'`)]},:<>".contains(c)
}

/// A document with its command line, paths and values of environment variables hashed, as tables
/// have them.
///
/// # Errors
/// When it cannot be turned into JSON and back.
pub fn redacted<D: Serialize + DeserializeOwned>(document: &D) -> Result<D, serde_json::Error> {
    let mut value = serde_json::to_value(document)?;
    redact(&mut value);
    serde_json::from_value(value)
}

/// The same of the words of a command line.
#[must_use]
pub fn redacted_command(words: &[String]) -> Vec<String> {
    let line = words.join(" ");
    (!line.is_empty())
        .then(|| hidden(&line))
        .into_iter()
        .collect()
}

fn redact(value: &mut Value) {
    let none = Include::default();
    match value {
        Value::String(text) => *text = none.sentence(text).into_owned(),
        Value::Array(all) => all.iter_mut().for_each(redact),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                match field {
                    Value::Array(words) if name == "command" => {
                        let words: Vec<String> = words
                            .iter()
                            .filter_map(|word| word.as_str().map(str::to_owned))
                            .collect();
                        *field = redacted_command(&words).into();
                    }
                    Value::String(text) if name.starts_with("environment.") => *text = hidden(text),
                    field => redact(field),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What stands in place of a text.
#[must_use]
pub fn hidden(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("sha256:{}", &hexadecimal(&of_text(text))[..16]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_hidden_wherever_they_stand() {
        let none = Include::default();
        let message = "threads waited for /srv/db/main.db, and (\"/a\").";
        let hidden = none.sentence(message);
        assert!(
            !hidden.contains("srv") && !hidden.contains("/a"),
            "{hidden}"
        );
        assert!(hidden.starts_with("threads waited for sha256:"), "{hidden}");
        assert!(hidden.ends_with("\")."), "{hidden}");
        let paths = Include {
            paths: true,
            ..none
        };
        assert_eq!(paths.sentence(message), message);
    }

    #[test]
    fn a_redacted_document_has_no_command_and_no_path() {
        use pagewise_model::answer::{Document, Subject};
        use pagewise_model::findings::{Findings, Run};
        let command = vec![
            "/srv/app".to_owned(),
            "--customer".to_owned(),
            "acme".to_owned(),
        ];
        let mut found: Findings = Document::new(Run::default()).about(Subject::of_command(command));
        found
            .host
            .settings
            .insert("environment.LD_PRELOAD".to_owned(), "acme.so".to_owned());
        found.notes = vec!["threads waited for /srv/acme/main.db.".to_owned()];
        let redacted = redacted(&found).unwrap();
        let text = serde_json::to_string(&redacted).unwrap();
        assert!(!text.contains("acme") && !text.contains("/srv"), "{text}");
        assert_eq!(redacted.cost, found.cost);
        assert!(redacted.subject.command[0].starts_with("sha256:"));
    }

    #[test]
    fn what_is_no_path_stays() {
        let none = Include::default();
        for text in [
            "0.1 s / 3",
            "read/write",
            "80 % of 1/2",
            "always [madvise] never",
        ] {
            assert_eq!(none.sentence(text), text);
        }
    }

    #[test]
    fn equal_values_stay_equal_and_others_differ() {
        let none = Include::default();
        let value = |value| none.setting("environment.LD_PRELOAD", value).into_owned();
        assert_eq!(value("/opt/a.so"), value("/opt/a.so"));
        assert_ne!(value("/opt/a.so"), value("/opt/b.so"));
        assert_eq!(none.setting("thp.enabled", "always"), "always");
        assert_eq!(none.command(&["ls".to_owned()]), None);
    }
}
