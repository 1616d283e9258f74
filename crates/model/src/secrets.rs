//! Passwords, keys and tokens on command lines, masked wherever a command line is shown or stored.
//!
//! What is a secret follows from its name (`--password=…`, `API_TOKEN=…`, `Authorization: …`), from
//! its form (`https://user:…@host`, `ghp_…`), or from the program (`mysql -p…`). A secret without
//! any of these stays: this keeps passwords out of files by accident, not against intent.

use std::borrow::Cow;

/// What stands in a secret's place.
const MASK: &str = "***";
/// Words of which a name consists that make what it names a secret.
const SECRET: [&str; 15] = [
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
    "pw",
    "secret",
    "secrets",
    "token",
    "apikey",
    "credential",
    "credentials",
    "authorization",
    "cookie",
    "bearer",
];
/// The same for two words in turn.
const SECRET_PAIRS: [[&str; 2]; 6] = [
    ["api", "key"],
    ["access", "key"],
    ["private", "key"],
    ["secret", "key"],
    ["account", "key"],
    ["encryption", "key"],
];
/// Last words of names of something else: where a secret is, how long, how many.
const ABOUT: [&str; 24] = [
    "file", "path", "dir", "folder", "command", "cmd", "env", "stdin", "fd", "prompt", "type",
    "name", "id", "count", "limit", "size", "length", "len", "min", "max", "policy", "ttl",
    "timeout", "store",
];
/// How well-known tokens begin.
const TOKENS: [&str; 12] = [
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "sk-",
    "AKIA",
    "hvs.",
    "npm_",
    "eyJ",
];
/// Fewest characters of a token: shorter words that begin like one are names.
const LEAST_TOKEN: usize = 20;
/// Programs that take a password with the letter `-p`, without a blank.
const PASSWORD_WITH_P: [&str; 4] = ["mysql", "mariadb", "sshpass", "mongo"];

/// A command line without its secrets, with as many words.
#[must_use]
pub fn masked(words: &[String]) -> Vec<String> {
    let mut program = "";
    let mut next_is_secret = false;
    let mut out = Vec::with_capacity(words.len());
    for word in words {
        let (seen, announces) = match next_is_secret && !word.starts_with('-') {
            true => (mask_value(word).into_owned(), false),
            false if word.chars().any(char::is_whitespace) => (text(word), false),
            false => one_word(word, program),
        };
        out.push(seen);
        next_is_secret = announces;
        if !word.starts_with('-') {
            program = known_program(word).unwrap_or(program);
        }
    }
    out
}

/// A text that may hold command lines, such as a script for `sh -c` or the value of a variable.
#[must_use]
pub fn masked_text(words: &str) -> String {
    text(words)
}

/// The value of a variable with this name.
#[must_use]
pub fn masked_variable(name: &str, value: &str) -> String {
    match is_secret_name(name) {
        true => mask_value(value).into_owned(),
        false => text(value),
    }
}

/// Words and the blanks between them, one after the other.
fn text(whole: &str) -> String {
    let mut out = String::with_capacity(whole.len());
    let mut program = "";
    let mut next_is_secret = false;
    for piece in whole.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end_matches(char::is_whitespace);
        let blanks = &piece[word.len()..];
        let (bare, quote) = unquoted(word);
        let seen = match next_is_secret && !bare.is_empty() {
            // The scheme is no secret, what follows is: Authorization: Bearer TOKEN.
            true if is_scheme(bare) => word.to_owned(),
            true if bare.starts_with('-') => {
                next_is_secret = false;
                one_word(word, program).0
            }
            true => {
                next_is_secret = false;
                format!("{}{}{}", quote.0, mask_value(bare), quote.1)
            }
            false => {
                let (seen, announces) = one_word(word, program);
                next_is_secret = announces || (next_is_secret && bare.is_empty());
                seen
            }
        };
        if !bare.starts_with('-') && !bare.is_empty() {
            program = known_program(bare).unwrap_or(program);
        }
        out.push_str(&seen);
        out.push_str(blanks);
    }
    out
}

fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "token", "digest", "negotiate"]
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// A word without quotation marks and the like around it, and these.
fn unquoted(word: &str) -> (&str, (&str, &str)) {
    let marks = ['"', '\'', ';', ')', '(', '`', ','];
    let start = word.trim_start_matches(marks);
    let bare = start.trim_end_matches(marks);
    let before = &word[..word.len() - start.len()];
    (bare, (before, &start[bare.len()..]))
}

/// A word without blanks, and whether the next one is a secret.
fn one_word(word: &str, program: &str) -> (String, bool) {
    let (bare, (before, after)) = unquoted(word);
    if let Some(secret) = bare.strip_prefix("-p").filter(|_| takes_p(program))
        && !bare.starts_with("--")
    {
        return match secret.is_empty() {
            true => (word.to_owned(), program == "sshpass"),
            false => (format!("{before}-p{}{after}", mask_value(secret)), false),
        };
    }
    if program == "redis-cli" && bare == "-a"
        || program == "curl" && matches!(bare, "-u" | "--user")
    {
        return (word.to_owned(), true);
    }
    let option = bare.strip_prefix("--").or_else(|| bare.strip_prefix('-'));
    let announces = option.is_some_and(|name| is_name(name) && is_secret_name(name))
        || bare.strip_suffix(':').is_some_and(is_secret_name);
    (parts(word), announces)
}

/// Replaces secrets inside a word: of URLs, after names with `=` or `:`, and known tokens.
fn parts(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find(['=', ':']) {
        let (before, value) = (&rest[..at], &rest[at + 1..]);
        let name = &before[start_of_name(before)..];
        out.push_str(before);
        out.push_str(&rest[at..=at]);
        rest = value;
        if rest.starts_with("//") && rest[2..].contains('@') {
            let (masked, left) = authority(&rest[2..]);
            out.push_str("//");
            out.push_str(&masked);
            rest = left;
        } else if is_secret_name(name) {
            let quotes = rest.len() - rest.trim_start_matches(['"', '\'']).len();
            let (quote, secret) = rest.split_at(quotes);
            let end = secret
                .find(['"', '\'', '&', ',', ';', '}'])
                .unwrap_or(secret.len());
            out.push_str(quote);
            out.push_str(&mask_value(&secret[..end]));
            rest = &secret[end..];
        }
    }
    out.push_str(rest);
    match tokens(&out) {
        Some(masked) => masked,
        None => out,
    }
}

/// What precedes the host in a URL, masked, and what follows it.
fn authority(after_slashes: &str) -> (String, &str) {
    let end = after_slashes
        .find(['/', '?', '#', '"', '\''])
        .unwrap_or(after_slashes.len());
    let (place, rest) = after_slashes.split_at(end);
    let Some((user, host)) = place.rsplit_once('@') else {
        return (place.to_owned(), rest);
    };
    let user = match user.split_once(':') {
        Some((name, secret)) => format!("{name}:{}", mask_value(secret)),
        // A user's name; but a token in its place is long.
        None if user.len() < LEAST_TOKEN => user.to_owned(),
        None => MASK.to_owned(),
    };
    (format!("{user}@{host}"), rest)
}

/// Words that begin as known tokens do, masked; `None` without any.
fn tokens(word: &str) -> Option<String> {
    let is_of_token = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let found = TOKENS.iter().find_map(|mark| {
        let at = word.find(mark)?;
        let is_start = !word[..at].ends_with(is_of_token);
        let end = word[at..].find(|c| !is_of_token(c));
        let end = at + end.unwrap_or(word.len() - at);
        (is_start && end - at >= LEAST_TOKEN).then_some((at, mark.len(), end))
    });
    let (at, mark, end) = found?;
    let masked = format!("{}{MASK}{}", &word[..at + mark], &word[end..]);
    Some(tokens(&masked).unwrap_or(masked))
}

/// A secret's mask. What names a secret that is elsewhere stays: `$PASSWORD`, an empty value.
fn mask_value(value: &str) -> Cow<'_, str> {
    let is_reference = value.starts_with('$') && value.len() > 1;
    match value.is_empty() || is_reference {
        true => Cow::Borrowed(value),
        false => Cow::Borrowed(MASK),
    }
}

/// Where the name at the end of a text starts.
fn start_of_name(text: &str) -> usize {
    let name = text.trim_end_matches(['"', '\'', ' ']);
    let start = name
        .char_indices()
        .rev()
        .take_while(|(_, c)| is_of_name(*c))
        .last();
    start.map_or(text.len(), |(at, _)| at)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.".contains(c)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_of_name)
}

/// Whether what has this name is a secret.
fn is_secret_name(name: &str) -> bool {
    // The shell's working folder.
    if matches!(name, "PWD" | "OLDPWD") {
        return false;
    }
    let words = words_of(name);
    if words.first().is_some_and(|first| first == "no") {
        return false;
    }
    if words
        .last()
        .is_none_or(|last| ABOUT.contains(&last.as_str()))
    {
        return false;
    }
    let pair = |two: &[String]| {
        SECRET_PAIRS
            .iter()
            .any(|[a, b]| two[0] == *a && two[1] == *b)
    };
    words.iter().any(|word| SECRET.contains(&word.as_str())) || words.windows(2).any(pair)
}

/// The words of `--db-password`, `DB_PASSWORD`, `db.password` and `dbPassword`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() || (was_lower && c.is_ascii_uppercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_ascii_alphanumeric()) {
            word.push(c.to_ascii_lowercase());
        }
        was_lower = c.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A program whose short options are known.
fn known_program(word: &str) -> Option<&'static str> {
    let name = word.rsplit('/').next().unwrap_or(word);
    let named = PASSWORD_WITH_P
        .iter()
        .find(|known| name.starts_with(**known));
    let exact = ["redis-cli", "curl"].iter().find(|known| name == **known);
    named.or(exact).copied()
}

fn takes_p(program: &str) -> bool {
    PASSWORD_WITH_P.contains(&program)
}

#[cfg(test)]
mod tests;
