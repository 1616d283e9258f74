//! Tables as text.

/// The innermost frames of a stack, which is given outermost first.
pub fn innermost(stack: &[String]) -> String {
    const SHOWN: usize = 4;
    let frames: Vec<&str> = stack.iter().rev().take(SHOWN).map(String::as_str).collect();
    frames.join(" ← ")
}

/// Columns of text: those of numbers are right-aligned.
pub fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.chain([heads[at].chars().count()]).max().unwrap_or(0)
    };
    let is_number = |at: usize| {
        !rows.is_empty()
            && rows.iter().all(|row| {
                row[at].is_empty()
                    || row[at].starts_with(|c: char| c.is_ascii_digit() || "+-−".contains(c))
            })
    };
    let shape: Vec<(usize, bool)> = (0..heads.len())
        .map(|at| (width(at), is_number(at)))
        .collect();
    let mut out = String::new();
    let heads: Vec<String> = heads.iter().map(|&head| head.to_owned()).collect();
    for row in std::iter::once(&heads).chain(rows) {
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
    out
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
            table(&["name", "n"], &rows),
            "  name    n\n  a       7\n  long  123\n"
        );
        assert_eq!(
            (number(0.034), number(12.34), percent(0.0312)),
            ("3.40e-2".to_owned(), "12.3".to_owned(), "3.12 %".to_owned())
        );
    }
}
