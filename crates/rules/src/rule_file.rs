//! Files of rules, tables and words.
//!
//! A file is rejected if a field is unknown or missing, and if its parts are inconsistent
//! ([`Content::check`]). The built-in files are compiled in, and each is read by a test, so that
//! they cannot fail in use.

use serde::de::DeserializeOwned;

/// A rule file that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("rule file {file}, line {line}: {what}")]
pub struct RuleError {
    /// Name of the file.
    pub file: String,
    /// Line of the mistake, from 1 on.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub what: String,
}

/// An error in an otherwise well-formed file.
#[derive(Debug)]
pub struct Mistake {
    /// Byte of the text.
    pub at: usize,
    /// What is wrong, and what was expected.
    pub what: String,
}

/// The contents of a rule file.
pub trait Content: DeserializeOwned {
    /// Whether its parts are consistent.
    fn check(&self) -> Result<(), Mistake> {
        Ok(())
    }
}

/// A file by its name below `rules`, with its text.
#[derive(Clone, Copy)]
pub struct RuleFile {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// A file in the folder `rules` of the crate that names it, compiled in.
#[macro_export]
macro_rules! rule_file {
    ($name:literal) => {
        $crate::RuleFile {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/rules/", $name)),
        }
    };
}
impl RuleFile {
    /// Its contents.
    pub fn read<T: Content>(&self) -> Result<T, RuleError> {
        read(self.name, self.text)
    }

    /// The same for a file that is checked by a test.
    pub fn shipped<T: Content>(&self) -> T {
        self.read().unwrap_or_else(|error| panic!("{error}"))
    }
}

/// The contents of a file with this name.
pub fn read<T: Content>(name: &str, text: &str) -> Result<T, RuleError> {
    let refused = |at: usize, what: &str| RuleError {
        file: name.to_owned(),
        line: line_of(text, at),
        what: what.to_owned(),
    };
    let content: T = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        refused(at, error.message())
    })?;
    let checked = content.check();
    checked.map_err(|mistake| refused(mistake.at, &mistake.what))?;
    Ok(content)
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.bytes().take(at);
    1 + before.filter(|&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sizes {
        #[serde(rename = "size")]
        sizes: Vec<toml::Spanned<u64>>,
    }

    impl Content for Sizes {
        fn check(&self) -> Result<(), Mistake> {
            match self.sizes.iter().find(|size| *size.get_ref() == 0) {
                None => Ok(()),
                Some(size) => Err(Mistake {
                    at: size.span().start,
                    what: "a size of 0, expected one from 1 on".to_owned(),
                }),
            }
        }
    }

    fn mistake(text: &str) -> String {
        let read: Result<Sizes, RuleError> = read("mine.toml", text);
        read.expect_err("a mistake").to_string()
    }

    #[test]
    fn mistakes_are_told_with_file_line_and_what_was_expected() {
        let unknown = mistake("# sizes\nsize = [1]\nsort = 3\n");
        assert_eq!(
            unknown,
            "rule file mine.toml, line 3: unknown field `sort`, expected `size`"
        );
        let text = mistake("size = [\n  1,\n  'a',\n]\n");
        assert!(
            text.contains("line 3") && text.contains("expected u64"),
            "{text}"
        );
        let zero = mistake("size = [\n  1,\n  0]\n");
        assert_eq!(
            zero,
            "rule file mine.toml, line 3: a size of 0, expected one from 1 on"
        );
    }
}
