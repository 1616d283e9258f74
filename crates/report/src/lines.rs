//! Text built line by line.

use std::fmt::{Arguments, Write};

/// Appends a line to a text, formatted as by `format!`; without arguments, an empty line.
macro_rules! line {
    ($text:expr) => { $crate::lines::append($text, format_args!("")) };
    ($text:expr, $($args:tt)*) => { $crate::lines::append($text, format_args!($($args)*)) };
}

pub(crate) use line;

/// The expansion of `line!`.
pub(crate) fn append(text: &mut String, args: Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(args);
    text.push('\n');
}
