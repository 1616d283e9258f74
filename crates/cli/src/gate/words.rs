//! A command given as one argument.

use std::ffi::OsString;
use std::str::FromStr;

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Words(pub Vec<OsString>);

/// Words with a meaning only in a shell.
const OF_SHELLS: [&str; 9] = ["|", "||", "&", "&&", ";", ">", ">>", "<", "2>"];

impl FromStr for Words {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = shlex::split(text).ok_or_else(|| format!("unclosed quote in: {text}"))?;
        if let Some(word) = words.iter().find(|word| OF_SHELLS.contains(&word.as_str())) {
            return Err(format!(
                "no shell runs the command, so '{word}' would be an argument; if you want a shell, write sh -c '…' on both sides"
            ));
        }
        match words.is_empty() {
            true => Err("there is no command".to_owned()),
            false => Ok(Self(words.into_iter().map(OsString::from).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let words: Words = "./old/app 'a b' \"c\" d\\ e".parse().unwrap();
        assert_eq!(words.0, ["./old/app", "a b", "c", "d e"]);
        for wrong in ["", "  ", "./app 'x", "./app | wc", "./app > x"] {
            assert!(wrong.parse::<Words>().is_err(), "{wrong}");
        }
        assert!("sh -c './app | wc'".parse::<Words>().is_ok());
    }
}
