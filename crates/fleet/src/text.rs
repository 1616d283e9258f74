//! Tables as text.

/// The innermost frames of a stack, which is given outermost first.
pub fn innermost(stack: &[String]) -> String {
    const SHOWN: usize = 4;
    let frames: Vec<&str> = stack.iter().rev().take(SHOWN).map(String::as_str).collect();
    frames.join(" ← ")
}

/// A table, for a terminal or a page.
#[derive(Debug, Default)]
pub struct Table {
    pub title: Option<String>,
    pub heads: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// Rows that there are besides.
    pub more: usize,
}

impl Table {
    /// A table under a title; none if that is empty.
    pub fn new(title: &str, heads: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self {
            title: (!title.is_empty()).then(|| title.to_owned()),
            heads: heads.iter().map(|&head| head.to_owned()).collect(),
            rows,
            more: 0,
        }
    }

    /// Whether all cells of a column are numbers, with or without what follows them.
    pub fn is_of_numbers(&self, column: usize) -> bool {
        let is_number = |cell: &String| {
            cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit() || "+-−".contains(c))
        };
        !self.rows.is_empty() && self.rows.iter().all(|row| is_number(&row[column]))
    }

    /// For a terminal: columns of numbers are right-aligned.
    pub fn text(&self) -> String {
        let width = |at: usize| {
            let cells = self.rows.iter().map(|row| row[at].chars().count());
            cells
                .chain([self.heads[at].chars().count()])
                .max()
                .unwrap_or(0)
        };
        let shape: Vec<(usize, bool)> = (0..self.heads.len())
            .map(|at| (width(at), self.is_of_numbers(at)))
            .collect();
        let mut out = String::new();
        if let Some(title) = &self.title {
            out.extend([title.as_str(), "\n"]);
        }
        for row in std::iter::once(&self.heads).chain(&self.rows) {
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
}

/// A figure with as many digits as its size needs.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.2e}"),
    }
}

/// A share, as percent.
pub fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_right_aligned() {
        let rows = vec![
            vec!["a".to_owned(), "7".to_owned()],
            vec!["long".to_owned(), "123".to_owned()],
        ];
        assert_eq!(
            Table::new("", &["name", "n"], rows).text(),
            "  name    n\n  a       7\n  long  123\n"
        );
        assert_eq!(
            (number(0.034), number(12.34), percent(0.0312)),
            ("3.40e-2".to_owned(), "12.3".to_owned(), "3.12 %".to_owned())
        );
    }
}
