//! Rows in columns. Widths depend on the content; cells that do not fit on a line continue below
//! it, each under its head.

use super::page::{Ink, Page};
use super::wrap::columns;

/// Columns before a row, and before its continuation lines.
const INDENTS: [usize; 2] = [2, 6];
/// Columns between two columns.
const GAP: usize = 2;
/// Widest name that has its figures on the same line.
const NAME: usize = 40;

/// A column's head, and whether its cells are right-aligned, as figures are.
#[derive(Clone, Copy)]
pub struct Column<'a> {
    head: &'a str,
    is_figure: bool,
}

/// A column of words.
pub fn words(head: &str) -> Column<'_> {
    Column {
        head,
        is_figure: false,
    }
}

/// A column of figures.
pub fn figures(head: &str) -> Column<'_> {
    Column {
        head,
        is_figure: true,
    }
}

/// A name, then columns of figures.
pub fn named<'a>(name: &'a str, of: &[&'a str]) -> Vec<Column<'a>> {
    let of = of.iter().map(|head| figures(head));
    std::iter::once(words(name)).chain(of).collect()
}

/// A name and its figures.
pub struct Row {
    cells: Vec<String>,
    ink: Ink,
    below: String,
}

impl Row {
    /// A cell for each column, the name first.
    pub fn new(cells: impl Into<Vec<String>>) -> Self {
        Self {
            cells: cells.into(),
            ink: Ink::Plain,
            below: String::new(),
        }
    }

    /// The row in `ink`.
    pub fn in_ink(self, ink: Ink) -> Self {
        Self { ink, ..self }
    }

    /// Adds text on separate lines below the row.
    pub fn with_below(self, below: String) -> Self {
        Self { below, ..self }
    }

    fn cell(&self, column: usize) -> &str {
        self.cells.get(column).map_or("", String::as_str)
    }
}

impl Page {
    /// A table under its title; nothing if it has no rows.
    pub fn table(
        &mut self,
        title: &str,
        heads: &[Column<'_>],
        rows: impl IntoIterator<Item = Row>,
    ) {
        let mut rows = rows.into_iter().peekable();
        if rows.peek().is_some() {
            self.heading(title);
            self.rows(heads, rows);
        }
    }

    /// Rows under their heads.
    pub fn rows(&mut self, heads: &[Column<'_>], rows: impl IntoIterator<Item = Row>) {
        let rows: Vec<Row> = rows.into_iter().collect();
        let layout = Layout::new(heads, &rows, self.width);
        let head = heads.iter().map(|one| one.head.to_owned());
        let head = Row::new(head.collect::<Vec<_>>()).in_ink(Ink::Faint);
        self.row(&layout, heads, &head);
        for row in &rows {
            self.row(&layout, heads, row);
            if !row.below.is_empty() {
                self.indented(INDENTS[1], Ink::Faint, &row.below);
            }
        }
    }

    fn row(&mut self, layout: &Layout, heads: &[Column<'_>], row: &Row) {
        let mut name = row.cell(0);
        if columns(name) > layout.widths.first().copied().unwrap_or(0) {
            self.indented(INDENTS[0], row.ink, name);
            name = "";
        }
        for (number, line) in layout.lines.iter().enumerate() {
            let indent = INDENTS[number.min(1)];
            if let [only] = line[..]
                && number > 0
            {
                if !row.cell(only).is_empty() {
                    self.indented(indent, row.ink, row.cell(only));
                }
                continue;
            }
            let cells = line.iter().map(|&column| {
                let cell = if column == 0 { name } else { row.cell(column) };
                let width = layout.widths[column];
                match heads[column].is_figure {
                    true => format!("{cell:>width$}"),
                    false => format!("{cell:<width$}"),
                }
            });
            let cells = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
            if !cells.trim().is_empty() {
                let cells = self.paint(row.ink, cells.trim_end());
                self.line(&format!("{:indent$}{cells}", ""));
            }
        }
    }
}

/// Which columns go on which line of a row, and how wide they are.
struct Layout {
    widths: Vec<usize>,
    lines: Vec<Vec<usize>>,
}

impl Layout {
    fn new(heads: &[Column<'_>], rows: &[Row], page: usize) -> Self {
        let widths: Vec<usize> = (0..heads.len())
            .map(|column| {
                let cells = rows.iter().map(|row| columns(row.cell(column)));
                let beside = cells.filter(|&width| column > 0 || width <= NAME);
                beside.fold(columns(heads[column].head), usize::max)
            })
            .collect();
        let mut lines = vec![Vec::new()];
        let mut used = INDENTS[0];
        for (column, width) in widths.iter().enumerate() {
            if column > 0 && used + width > page {
                lines.push(Vec::new());
                used = INDENTS[1];
            }
            if let Some(line) = lines.last_mut() {
                line.push(column);
            }
            used += width + GAP;
        }
        Self { widths, lines }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Style;
    use super::*;

    fn table(width: usize) -> String {
        let style = Style {
            color: false,
            unicode: true,
        };
        let mut page = Page::new(width, style);
        let heads = [
            words("kind"),
            figures("faults"),
            figures("p50"),
            words("peaks"),
        ];
        let row = |name: &str, [a, b, c]: [&str; 3]| Row::new([name, a, b, c].map(str::to_owned));
        let rows = [
            row(
                "anonymous, first touch",
                ["317", "6.61 µs [6.13, 7.09]", "6.62 µs (90 %)"],
            ),
            row(&"x".repeat(50), ["1", "9 ns", ""]).with_below("below".to_owned()),
        ];
        page.table("Kinds", &heads, rows);
        page.finish()
    }

    #[test]
    fn a_wide_page_has_a_line_for_each_row() {
        let wide = "\
Kinds
  kind                    faults                   p50  peaks
  anonymous, first touch     317  6.61 µs [6.13, 7.09]  6.62 µs (90 %)
  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
                               1                  9 ns
      below
";
        assert_eq!(table(100), wide);
    }

    #[test]
    fn on_a_narrow_page_columns_go_on_below_with_their_heads() {
        let narrow = "\
Kinds
  kind                    faults                   p50
      peaks
  anonymous, first touch     317  6.61 µs [6.13, 7.09]
      6.62 µs (90 %)
  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
                               1                  9 ns
      below
";
        assert_eq!(table(60), narrow);
    }
}
