//! Sequence files: one sequence per line with items separated by blanks, or SPMF's format.
//!
//! SPMF (<https://www.philippe-fournier-viger.com/spmf/>): integers, `-1` after each itemset, `-2`
//! at the end of a sequence; `#`, `%` and `@` begin comments, of which `@ITEM=number=name` names an
//! item. A file is in SPMF's format if its first line with items ends in `-2`.

use super::database::{Builder, Database};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use thiserror::Error;

/// A sequence file that can't be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ReadError {
    /// The file is not text.
    #[error("line {line} is not valid UTF-8 text; expected one sequence of items per line")]
    NotText {
        /// Counted from 1.
        line: usize,
    },
    /// Only sequences of single items can be mined.
    #[error(
        "line {line}: the itemset \"{itemset}\" holds several items; only sequences of single \
         items can be mined. Put each item into a set of its own (\"1 -1 2 -1 -2\")"
    )]
    SeveralItems {
        /// Counted from 1.
        line: usize,
        /// The items, separated by blanks.
        itemset: String,
    },
    /// A line that violates SPMF's format.
    #[error("line {line}: \"{found}\" in a file of SPMF's format; expected {expected}")]
    NotSpmf {
        /// Counted from 1.
        line: usize,
        /// The text found.
        found: String,
        /// The expected text.
        expected: &'static str,
    },
}

/// Reads a sequence file of either format.
///
/// # Errors
/// [`ReadError`] contains the unreadable line and the reason.
pub fn read(text: &[u8]) -> Result<Database, ReadError> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.split(|&b| b == b'\n')) {
        let line = std::str::from_utf8(line).map_err(|_| ReadError::NotText { line: number })?;
        lines.push((number, line.trim()));
    }
    let first = lines.iter().find(|(_, line)| !is_remark(line));
    let is_spmf = first.is_some_and(|(_, line)| line.split_whitespace().next_back() == Some("-2"));
    if is_spmf {
        spmf(&lines)
    } else {
        Ok(plain(&lines))
    }
}

fn is_remark(line: &str) -> bool {
    line.is_empty() || line.starts_with(['#', '%', '@'])
}

fn plain(lines: &[(usize, &str)]) -> Database {
    let mut builder = Builder::new();
    for (_, line, times) in distinct(lines, str::is_empty) {
        builder.push_many(line.split_whitespace(), times);
    }
    builder.finish()
}

/// The lines that are not left out, each once with the number of its first occurrence and how often
/// it occurs: sequences repeat, and a line is compared faster than its items are looked up.
fn distinct<'a>(
    lines: &[(usize, &'a str)],
    is_left_out: impl Fn(&str) -> bool,
) -> Vec<(usize, &'a str, u64)> {
    let mut known: FxHashMap<&str, usize> = FxHashMap::default();
    let mut distinct = Vec::new();
    for &(number, line) in lines.iter().filter(|(_, line)| !is_left_out(line)) {
        let at = *known.entry(line).or_insert(distinct.len());
        if at == distinct.len() {
            distinct.push((number, line, 0));
        }
        distinct[at].2 += 1;
    }
    distinct
}

fn spmf(lines: &[(usize, &str)]) -> Result<Database, ReadError> {
    let names: BTreeMap<&str, &str> = lines
        .iter()
        .filter_map(|(_, line)| line.strip_prefix("@ITEM=")?.split_once('='))
        .collect();
    let mut builder = Builder::new();
    for (number, line, times) in distinct(lines, is_remark) {
        let items = spmf_items(number, line)?;
        let named = items.iter().map(|item| names.get(item).unwrap_or(item));
        builder.push_many(named.copied(), times);
    }
    Ok(builder.finish())
}

fn spmf_items(number: usize, line: &str) -> Result<Vec<&str>, ReadError> {
    let wrong = |found: &str, expected| ReadError::NotSpmf {
        line: number,
        found: found.to_owned(),
        expected,
    };
    let Some(sets) = line.strip_suffix("-2") else {
        let last = line.split_whitespace().next_back().unwrap_or_default();
        return Err(wrong(last, "\"-2\" at the end of the line"));
    };
    let mut items = Vec::new();
    let mut itemset = Vec::new();
    for word in sets.split_whitespace() {
        match word.parse::<i64>() {
            Ok(-1) => items.push(single(number, &mut itemset)?),
            Ok(0..) => itemset.push(word),
            _ => return Err(wrong(word, "a whole number, \"-1\" or \"-2\"")),
        }
    }
    match itemset.first() {
        Some(word) => Err(wrong(word, "\"-1\" after each item")),
        None => Ok(items),
    }
}

fn single<'a>(line: usize, itemset: &mut Vec<&'a str>) -> Result<&'a str, ReadError> {
    let found = std::mem::take(itemset);
    match found[..] {
        [item] => Ok(item),
        [] => Err(ReadError::NotSpmf {
            line,
            found: "-1".to_owned(),
            expected: "an item before it",
        }),
        _ => Err(ReadError::SeveralItems {
            line,
            itemset: found.join(" "),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<Vec<String>, ReadError> {
        let database = read(text.as_bytes())?;
        let show = |(items, weight): (&[u32], u64)| {
            let names: Vec<&str> = items.iter().map(|&i| database.name(i)).collect();
            format!("{weight}×{}", names.join(" "))
        };
        Ok(database.sequences().map(show).collect())
    }

    #[test]
    fn plain_lines_and_repeats() {
        let text = "a b\n\n  c   d\ta\r\na b\n";
        assert_eq!(shown(text), Ok(vec!["2×a b".into(), "1×c d a".into()]));
    }

    #[test]
    fn a_plain_item_may_look_like_a_remark() {
        assert_eq!(shown("# a\n@b"), Ok(vec!["1×# a".into(), "1×@b".into()]));
    }

    #[test]
    fn spmf_with_names() {
        let text =
            "@CONVERTED_FROM_TEXT\n@ITEM=1=apple\n@ITEM=2=pear\n1 -1 2 -1 10 -1 -2\n2 -1 -2\n";
        assert_eq!(
            shown(text),
            Ok(vec!["1×apple pear 10".into(), "1×pear".into()])
        );
    }

    #[test]
    fn errors_say_where_and_what() {
        let several = ReadError::SeveralItems {
            line: 2,
            itemset: "1 2".into(),
        };
        assert_eq!(shown("1 -1 -2\n1 2 -1 -2"), Err(several));
        let missing = shown("1 -1 -2\n\n1 -1").expect_err("no -2");
        assert!(
            missing.to_string().starts_with("line 3: \"-1\""),
            "{missing}"
        );
        assert!(shown("1 -1 -2\n1 x -1 -2").is_err());
        assert!(shown("1 -1 -2\n1 -2").is_err());
        assert!(shown("1 -1 -2\n-1 -2").is_err());
        assert_eq!(
            read(b"a\n\xff\n").err(),
            Some(ReadError::NotText { line: 2 })
        );
    }
}
