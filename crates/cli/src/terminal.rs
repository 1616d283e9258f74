//! What our standard output can show.

use pagewise_report::text::Style;
use std::io::{self, IsTerminal};

/// Columns where nothing tells: a file or a pipe is read at this width.
const USUAL_WIDTH: usize = 100;

/// Columns of the terminal on standard output.
pub fn width() -> usize {
    if !io::stdout().is_terminal() {
        return USUAL_WIDTH;
    }
    crossterm::terminal::size().map_or(USUAL_WIDTH, |(columns, _)| usize::from(columns))
}

/// Colours only on a terminal and without `NO_COLOR`; characters beyond ASCII unless the locale
/// says that they cannot be shown.
pub fn style() -> Style {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    Style {
        color: io::stdout().is_terminal() && !is_set("NO_COLOR"),
        unicode: shows_unicode(),
    }
}

/// The first of these variables that is set names the locale (locale(7)). Where none is set, most
/// terminals of today show UTF-8 all the same.
fn shows_unicode() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty());
    locale.is_none_or(|name| {
        let name = name.to_ascii_lowercase();
        name.contains("utf-8") || name.contains("utf8") || name == "c" || name == "posix"
    })
}
