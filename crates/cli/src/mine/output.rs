//! Patterns and projected databases as text or JSON, written as they are found.

use crate::standard_output::StandardOutput;
use crate::terminal;
use anyhow::{Context, Result};
use pagewise_model::answer::{Kind, SCHEMA_VERSION};
use pagewise_model::fault_paths::TreePattern;
use pagewise_model::mined::{patterns_found, sequences_found};
use pagewise_report::border::Border;
use pagewise_report::text;
use pagewise_traces::mine::{self, Algorithm, Database, Item, Query};
use serde::Serialize;
use std::io::{self, BufWriter, Write};

/// Destination of results.
pub struct Output<W: Write> {
    out: W,
    json: bool,
    /// Memory for a line.
    line: String,
}

/// Results on standard output.
pub fn stdout(json: bool) -> Output<BufWriter<Border<StandardOutput>>> {
    Output {
        out: BufWriter::with_capacity(1 << 16, terminal::output(json)),
        json,
        line: String::new(),
    }
}

#[derive(Serialize)]
struct Pattern<'a> {
    items: &'a [&'a str],
    support: u64,
}

#[derive(Serialize)]
struct TreeOf<'a> {
    items: &'a [&'a str],
    support: u64,
    tree: &'a TreePattern,
}

impl<W: Write> Output<W> {
    /// Starts the document ([`pagewise_model::mined::Mined`]), which is written as results are
    /// found.
    fn begin(&mut self, list: &str) -> Result<()> {
        let kind = serde_json::to_string(&Kind::Mined)?;
        let head = format!("{{\"kind\":{kind},\"schema_version\":{SCHEMA_VERSION}");
        Ok(write!(
            self.out,
            "{head},\"evidence\":{{{kind}:{{\"{list}\":["
        )?)
    }

    /// Ends the list, the mined part and the evidence, and the document with its verdict.
    fn end(&mut self, verdict: &str) -> Result<()> {
        let verdict = serde_json::to_string(verdict)?;
        Ok(writeln!(self.out, "]}}}},\"verdict\":{verdict}}}")?)
    }

    /// Prints every pattern.
    pub fn patterns(&mut self, database: &Database, query: Query) -> Result<()> {
        if self.json {
            self.begin("patterns")?;
        }
        let (mut number, mut most) = (0, 0);
        let mut failure = Ok(());
        mine::mine(database, query, |items, support| {
            if failure.is_ok() {
                failure = self.pattern(database, items, support, number == 0);
                (number, most) = (number + 1, support.max(most));
            }
        });
        failure?;
        match self.json {
            true => self.end(&patterns_found(number, most)),
            false => Ok(()),
        }
    }

    fn pattern(
        &mut self,
        database: &Database,
        items: &[Item],
        support: u64,
        first: bool,
    ) -> io::Result<()> {
        let items = items.iter().map(|&item| database.name(item));
        if !self.json {
            self.line.clear();
            text::mined::pattern(items, support, &mut self.line);
            return self.out.write_all(self.line.as_bytes());
        }
        let items: Vec<&str> = items.collect();
        self.separate(first)?;
        let pattern = Pattern {
            items: &items,
            support,
        };
        serde_json::to_writer(&mut self.out, &pattern).map_err(io::Error::from)
    }

    /// Prints trees.
    pub fn trees(&mut self, trees: &[TreePattern]) -> Result<()> {
        if !self.json {
            for tree in trees {
                self.out.write_all(text::mined::tree(tree).as_bytes())?;
            }
            return Ok(());
        }
        self.begin("patterns")?;
        for (place, tree) in trees.iter().enumerate() {
            self.separate(place == 0)?;
            let is_item = |word: &&str| !word.starts_with('×') && !["(", ")"].contains(word);
            let items: Vec<&str> = tree.outline.split(' ').filter(is_item).collect();
            let pattern = TreeOf {
                items: &items,
                support: tree.faults,
                tree,
            };
            serde_json::to_writer(&mut self.out, &pattern)?;
        }
        let most = trees.iter().map(|tree| tree.faults).max().unwrap_or(0);
        self.end(&patterns_found(trees.len() as u64, most))
    }

    /// Prints the continuations of a prefix.
    pub fn projection(
        &mut self,
        database: &Database,
        algorithm: Algorithm,
        items: &str,
    ) -> Result<()> {
        let unknown =
            |item: &str| format!("no sequence contains the item \"{item}\" of --projection");
        let prefix = items
            .split_whitespace()
            .map(|item| database.item(item).with_context(|| unknown(item)))
            .collect::<Result<Vec<Item>>>()?;
        let remainders = mine::project(database, algorithm, &prefix);
        let each = remainders
            .iter()
            .flat_map(|(rest, times)| (0..*times).map(move |_| rest));
        if self.json {
            self.begin("sequences")?;
        }
        let mut number = 0;
        for rest in each {
            self.sequence(database, rest, number == 0)?;
            number += 1;
        }
        match self.json {
            true => self.end(&sequences_found(number)),
            false => Ok(()),
        }
    }

    fn sequence(&mut self, database: &Database, items: &[Item], first: bool) -> io::Result<()> {
        let items: Vec<&str> = items.iter().map(|&item| database.name(item)).collect();
        if !self.json {
            return writeln!(self.out, "{}", items.join(" "));
        }
        self.separate(first)?;
        serde_json::to_writer(&mut self.out, &items).map_err(io::Error::from)
    }

    fn separate(&mut self, first: bool) -> io::Result<()> {
        self.out.write_all(if first { b"" } else { b"," })
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
