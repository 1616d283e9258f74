//! Tables and figures as text.

use pagewise_model::units::{Bytes, Estimate};
use pagewise_report::html::sheets::{Cell, Column, Look, Sheet};
use pagewise_stats::hosts::Power;

/// The innermost frames of a stack, which is given outermost first.
pub fn innermost(stack: &[String]) -> String {
    const SHOWN: usize = 4;
    let frames: Vec<&str> = stack.iter().rev().take(SHOWN).map(String::as_str).collect();
    frames.join(" ← ")
}

/// A table, for a terminal or a page.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub title: String,
    pub heads: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
    /// Rows that there are besides.
    pub more: usize,
    /// What a link of a page to it ends in, where it is only on the page.
    pub detail: Option<String>,
}

impl Table {
    /// A table under a title; the title may be empty.
    pub fn new(title: &str, heads: &[&str], rows: Vec<Vec<Cell>>) -> Self {
        Self {
            title: title.to_owned(),
            heads: heads.iter().map(|&head| head.to_owned()).collect(),
            rows,
            ..Self::default()
        }
    }

    /// Whether all cells of a column are numbers, with or without what follows them.
    fn is_of_numbers(&self, column: usize) -> bool {
        let is_number = |cell: &Cell| {
            let text = &cell.text;
            text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit() || "+-−<".contains(c))
        };
        !self.rows.is_empty() && self.rows.iter().all(|row| is_number(&row[column]))
    }

    /// For a terminal: columns of numbers are right-aligned.
    pub fn text(&self) -> String {
        let told = |cell: &Cell| match cell.note.is_empty() {
            true => cell.text.clone(),
            false => format!("{} ({})", cell.text, cell.note),
        };
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(told).collect())
            .collect();
        let width = |at: usize| {
            let cells = rows.iter().map(|row| row[at].chars().count());
            let all = cells.chain([self.heads[at].chars().count()]);
            all.max().unwrap_or(0)
        };
        let shape: Vec<(usize, bool)> = (0..self.heads.len())
            .map(|at| (width(at), self.is_of_numbers(at)))
            .collect();
        let mut out = String::new();
        if !self.title.is_empty() {
            out.extend([self.title.as_str(), "\n"]);
        }
        for row in std::iter::once(&self.heads).chain(&rows) {
            let mut line = String::from(" ");
            for (cell, &(width, right)) in row.iter().zip(&shape) {
                let blanks = " ".repeat(width - cell.chars().count());
                line.push(' ');
                match right {
                    true => line.extend([&*blanks, cell]),
                    false => line.extend([cell, &*blanks]),
                }
                line.push(' ');
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        if self.more > 0 {
            out.push_str(&format!("  … and {} more (--rows)\n", self.more));
        }
        out
    }

    /// For a page. What names things comes first there.
    pub fn sheet(&self, number: usize) -> Sheet {
        let mut order: Vec<usize> = (0..self.heads.len()).collect();
        order.sort_by_key(|&at| self.is_of_numbers(at));
        let columns = order.iter().map(|&at| Column {
            head: self.heads[at].clone(),
            look: self.look(at),
        });
        let rows = self
            .rows
            .iter()
            .map(|row| order.iter().map(|&at| row[at].clone()).collect());
        let name = match self.title.is_empty() {
            true => "Hosts",
            false => self.title.split([',', ':']).next().unwrap_or(&self.title),
        };
        let nav = if self.detail.is_some() { "" } else { name };
        Sheet {
            id: self
                .detail
                .clone()
                .unwrap_or_else(|| format!("table-{number}")),
            title: if self.title.is_empty() {
                name
            } else {
                &self.title
            }
            .to_owned(),
            nav: nav.to_owned(),
            columns: columns.collect(),
            rows: rows.collect(),
            more: self.more,
            is_folded: self.detail.is_some(),
            ..Sheet::default()
        }
    }

    fn look(&self, column: usize) -> Look {
        let mut cells = self.rows.iter().map(|row| &row[column]);
        if cells.clone().any(|cell| cell.interval.is_some()) {
            return Look::Interval;
        }
        if cells.any(|cell| cell.value.is_some()) {
            return Look::Bar;
        }
        let is_code = ["function", "module", "stack", "setting", "file"];
        match self.is_of_numbers(column) {
            true => Look::Number,
            false if is_code.contains(&&*self.heads[column]) => Look::Code,
            false => Look::Text,
        }
    }
}

/// A figure in at most three digits.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size < 0.000_5 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A share, as percent.
pub fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

/// The chance that something is no more than chance.
pub fn chance(p_value: f64) -> String {
    match p_value < 0.001 {
        true => "<0.001".to_owned(),
        false => format!("{:.3}", p_value.min(1.0)),
    }
}

/// Bytes with their unit.
pub fn bytes(value: f64) -> String {
    Bytes(value.max(0.0).round() as u64).to_string()
}

/// The unit of an amount of hours that needs few digits: its name, and how many of it are an hour.
fn unit_of(hours: f64) -> (&'static str, f64) {
    match hours.abs() {
        size if size >= 1.0 || size == 0.0 => ("h", 1.0),
        size if size * 60.0 >= 1.0 => ("min", 60.0),
        size if size * 3600.0 >= 1.0 => ("s", 3600.0),
        _ => ("ms", 3.6e6),
    }
}

/// Hours with the unit that suits them.
pub fn hours(value: f64) -> String {
    let (unit, per_hour) = unit_of(value);
    format!("{} {unit}", number(value * per_hour))
}

/// The same with an interval: `12.3 h (11.9 to 12.8)`.
pub fn hours_within(found: &Estimate) -> String {
    let (unit, per_hour) = unit_of(found.value);
    let [value, low, high] = [found.value, found.low, found.high].map(|end| number(end * per_hour));
    format!("{value} {unit} ({low} to {high})")
}

/// Cells of these.
pub fn hours_cell(value: f64) -> Cell {
    Cell::figure(hours(value), value)
}

pub fn within_cell(found: &Estimate) -> Cell {
    Cell::estimate(hours_within(found), found)
}

/// What could have been found among these hosts.
pub fn would_be_found(power: &Power) -> String {
    let share = power.share_of_a_function.map(|share| {
        format!(
            "from {} % of its CPU time on in a function that the others do not have",
            share * 100.0
        )
    });
    let factor = power
        .factor_of_cpu_time
        .map(|factor| format!("from {factor} times the CPU time of its like on"));
    match (share, factor) {
        (Some(share), Some(factor)) => {
            format!("With so many hosts that are alike, one would be found {share}, or {factor}.")
        }
        (Some(found), None) | (None, Some(found)) => {
            format!("With so few hosts that are alike, one would be found {found}, no other.")
        }
        (None, None) => {
            "Too few hosts are alike: not even one that spends half of its CPU time in a function \
                         of its own, or ten times as much CPU time, would have been found."
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_right_aligned() {
        let rows = vec![
            vec!["a".into(), "7".into()],
            vec!["long".into(), "123".into()],
        ];
        assert_eq!(
            Table::new("", &["name", "n"], rows).text(),
            "  name    n\n  a       7\n  long  123\n"
        );
    }

    #[test]
    fn figures_have_units_and_no_exponents() {
        assert_eq!(
            (number(0.034), number(12.34)),
            ("0.034".to_owned(), "12.3".to_owned())
        );
        assert_eq!(percent(0.0312), "3.12 %");
        assert_eq!(hours(0.0765), "4.59 min");
        let found = Estimate {
            value: 0.0765,
            low: 0.0725,
            high: 0.081,
        };
        assert_eq!(hours_within(&found), "4.59 min (4.35 to 4.86)");
        assert_eq!(bytes(2_013_890_888_952.0), "1.83 TiB");
        assert_eq!(
            (chance(1e-9), chance(0.0123)),
            ("<0.001".to_owned(), "0.012".to_owned())
        );
    }

    #[test]
    fn names_come_first_on_pages() {
        let found = Estimate {
            value: 2.0,
            low: 1.0,
            high: 3.0,
        };
        let rows = vec![vec![within_cell(&found), Cell::from("clear_page_erms")]];
        let sheet = Table::new("Functions", &["CPU time per day", "function"], rows).sheet(1);
        let looks: Vec<Look> = sheet.columns.iter().map(|column| column.look).collect();
        assert_eq!(looks, [Look::Code, Look::Interval]);
        assert_eq!(sheet.rows[0][1].text, "2.00 h (1.00 to 3.00)");
    }
}
