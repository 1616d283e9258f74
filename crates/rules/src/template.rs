//! Texts with placeholders: `{faults} of {all} page faults`.
//!
//! The values that a text may refer to are checked when its file is read, so that no placeholder
//! remains unfilled in use.

use crate::rule_file::Mistake;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

/// A text of a rule file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
    /// Its position in the file.
    at: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(String),
}

impl Template {
    /// `at` is the position of the text in its file.
    pub fn parse(text: &str, at: usize) -> Result<Self, &'static str> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find(['{', '}']) {
            let value = rest[open..]
                .strip_prefix('{')
                .ok_or("a '}' without '{' before it")?;
            let close = value
                .find(['{', '}'])
                .filter(|&at| value[at..].starts_with('}'));
            let close = close.ok_or("a '{' without '}' behind it")?;
            if open > 0 {
                parts.push(Part::Text(rest[..open].to_owned()));
            }
            parts.push(Part::Value(value[..close].to_owned()));
            rest = &value[close + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { parts, at })
    }

    /// Rejects a text with a value that is not among `given`.
    pub fn check(&self, given: &[&str]) -> Result<(), Mistake> {
        match self.names().find(|name| !given.contains(name)) {
            None => Ok(()),
            Some(name) => Err(self.mistake(format!(
                "unknown value {{{name}}}, expected {}",
                match given {
                    [] => "a text without values".to_owned(),
                    given => format!("one of {}", given.join(", ")),
                }
            ))),
        }
    }

    /// A mistake at the position of this text.
    pub fn mistake(&self, what: String) -> Mistake {
        Mistake { at: self.at, what }
    }

    /// Values that it refers to.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Value(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The text with its values.
    pub fn fill(&self, values: &[(&str, String)]) -> String {
        let value = |name: &str| {
            let mut named = values.iter().filter(|(one, _)| *one == name);
            named.next().map_or("", |(_, value)| value.as_str())
        };
        let parts = self.parts.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Value(name) => value(name),
        });
        parts.collect()
    }

    /// A text without values.
    pub fn plain(&self) -> String {
        self.fill(&[])
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Spanned::<String>::deserialize(deserializer)?;
        Self::parse(text.get_ref(), text.span().start).map_err(Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule_file::{Content, RuleError, read};

    #[derive(Debug, Deserialize)]
    struct Greeting {
        text: Template,
    }

    impl Content for Greeting {
        fn check(&self) -> Result<(), Mistake> {
            self.text.check(&["name", "-Xmx"])
        }
    }

    fn greeting(text: &str) -> Result<Greeting, RuleError> {
        read("words.toml", &format!("# words\ntext = \"{text}\"\n"))
    }

    #[test]
    fn values_take_their_places() {
        let text = greeting("{name}, {-Xmx}{name}.").unwrap().text;
        let values = [("name", "You".to_owned()), ("-Xmx", "2g".to_owned())];
        assert_eq!(text.fill(&values), "You, 2gYou.");
        assert_eq!(greeting("plain").unwrap().text.plain(), "plain");
    }

    #[test]
    fn unknown_values_and_stray_braces_are_refused_with_their_line() {
        let refused = |text: &str| greeting(text).expect_err("a mistake").to_string();
        assert_eq!(
            refused("to {nmae}"),
            "rule file words.toml, line 2: unknown value {nmae}, expected one of name, -Xmx"
        );
        for stray in ["{name", "name}", "{na{me}", "{name} }"] {
            let message = refused(stray);
            assert!(message.contains("line 2: a '"), "{stray}: {message}");
        }
    }
}
