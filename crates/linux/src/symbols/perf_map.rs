//! `/tmp/perf-PID.map`: names of code that a just-in-time compiler made.
//!
//! Format: `START SIZE NAME` in hexadecimal, a function a line
//! (tools/perf/Documentation/jit-interface.txt). Written by Node.js with `--perf-basic-prof`, by
//! Java with perf-map-agent, by CPython from 3.12 with `-X perf`, and by .NET.

use pagewise_model::symbol::Name;
use std::path::Path;

/// Functions by address; where two overlap, the later line counts, for code moves.
#[derive(Debug, Default)]
pub(super) struct PerfMap {
    functions: Vec<(u64, u64, String)>,
}

impl PerfMap {
    /// The map of a process, from its own `/tmp` if it lives, else from ours.
    pub fn of_process(root: &Path, pid: i32) -> Option<Self> {
        let name = format!("tmp/perf-{pid}.map");
        let own = root.join("proc").join(pid.to_string()).join("root");
        let text = std::fs::read(own.join(&name)).or_else(|_| std::fs::read(root.join(&name)));
        Some(Self::parse(&String::from_utf8_lossy(&text.ok()?)))
    }

    fn parse(text: &str) -> Self {
        let mut functions: Vec<_> = text.lines().filter_map(parse_line).collect();
        functions.sort_by_key(|&(start, ..)| start);
        Self { functions }
    }

    /// The function that holds `address`.
    pub fn name(&self, address: u64) -> Option<Name> {
        let after = self
            .functions
            .partition_point(|&(start, ..)| start <= address);
        let (start, size, function) = self.functions.get(after.checked_sub(1)?)?;
        (address - start < *size).then(|| Name::Known {
            functions: vec![function.clone()],
            module: "[jit]".to_owned(),
        })
    }
}

fn parse_line(line: &str) -> Option<(u64, u64, String)> {
    let mut parts = line.splitn(3, ' ');
    let mut number = || {
        let digits = parts.next()?.trim_start_matches("0x");
        u64::from_str_radix(digits, 16).ok()
    };
    let (start, size) = (number()?, number()?);
    Some((start, size, parts.next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_spaces_and_later_lines_win() {
        let map =
            PerfMap::parse("7f00 10 LazyCompile:~a b.js:1\nbroken\n0x8000 20 old\n8000 20 new\n");
        let name = |address| match map.name(address) {
            Some(Name::Known { functions, .. }) => functions[0].clone(),
            other => format!("{other:?}"),
        };
        assert_eq!(name(0x7f0f), "LazyCompile:~a b.js:1");
        assert_eq!(name(0x7f10), "None");
        assert_eq!(name(0x8001), "new");
        assert_eq!(name(0x10), "None");
    }
}
