//! Reports as one HTML file that opens offline.
//!
//! The page is a committed bundle (`assets/report.html`, built from `web/`); only data are
//! inserted. They are JSON in a script element of a type that browsers do not run, with `<` written
//! as `\u003c`, so that no name can end the element. Above [`PLAIN_LIMIT`] they are deflated and
//! encoded in base64. `document` writes any document; parts that need preparation have a module
//! each.

mod answers;
mod bytes;
mod document;
mod faults;
mod head;
mod memory;
mod pack;
mod paths;
mod ranks;
mod samples;
pub mod sheets;
mod track;

pub use answers::{
    render_allocators, render_annotated, render_check, render_faults, render_gate, render_mined,
    render_tuning,
};
pub use document::{
    render, render_fault_diff, render_fault_paths, render_huge_balance, render_huge_simulation,
    render_memory, render_paging, render_profile, render_profile_diff, render_run_diff,
    render_sheets, render_sheets_of, render_with_profile,
};

use crate::base64::base64;
use crate::text::Style;
use crate::visible::inert;
use bytes::Columns;
use serde::Serialize;
use std::io::Write;

/// The front end. `web/check-fresh` verifies that it equals a fresh build.
const SHELL: &str = include_str!("../../assets/report.html");
const DATA_MARK: &str = r#"type="application/json">PAGEWISE-DATA<"#;
const TEXT_MARK: &str = "PAGEWISE-TEXT";
const BYTES_MARK: &str = "PAGEWISE-BYTES<";

/// Bytes of JSON that are inserted uncompressed: readable by eye and by other tools.
const PLAIN_LIMIT: usize = 256 << 10;
/// Most bytes of data in the file; together with the shell the file stays below 5 MB.
const DATA_LIMIT: usize = 4_500_000;

/// Most bytes of data in a trace's page, whatever the length of the trace.
const TRACE_DATA_LIMIT: usize = 2_000_000;

/// Width of the report's text for browsers without scripts.
const TEXT_WIDTH: usize = 100;
const TEXT_STYLE: Style = Style {
    color: false,
    unicode: true,
};

/// Errors while a page is made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A figure could not be written as JSON.
    #[error("the findings could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Compression failed.
    #[error("the findings could not be compressed: {0}")]
    Deflate(#[from] std::io::Error),
}

/// Data in encoded form.
struct Encoded {
    encoding: &'static str,
    text: String,
}

/// Writes what takes the place of a mark.
type Insert<'a> = &'a dyn Fn(&mut String);

/// The page with its data and columns of numbers; `text` is shown by a browser without scripts.
fn page(data: &Encoded, columns: &Columns, text: &str) -> String {
    let text = escaped(&inert(text));
    let Encoded {
        encoding,
        text: data,
    } = data;
    // Written once, in place: columns take some megabytes.
    let insert_text = |page: &mut String| page.push_str(&text);
    let insert_data = |page: &mut String| {
        let kind = format!(r#"type="application/json" data-encoding="{encoding}">"#);
        page.extend([&kind, data, "<"]);
    };
    let insert_columns = |page: &mut String| {
        columns.write(page);
        page.push('<');
    };
    let mut inserts: [(&str, Insert<'_>); 3] = [
        (TEXT_MARK, &insert_text),
        (DATA_MARK, &insert_data),
        (BYTES_MARK, &insert_columns),
    ];
    inserts.sort_by_key(|(mark, _)| SHELL.find(mark));
    let inserted = text.len() + data.len() + columns.characters();
    let mut page = String::with_capacity(SHELL.len() + inserted + 64);
    let mut rest = SHELL;
    for (mark, insert) in inserts {
        if let Some((before, after)) = rest.split_once(mark) {
            page.push_str(before);
            insert(&mut page);
            rest = after;
        }
    }
    page.push_str(rest);
    page
}

fn encode(data: &impl Serialize) -> Result<Encoded, Error> {
    // Active characters occur only in JSON's strings; serde has escaped the ASCII ones.
    let json = serde_json::to_string(data)?;
    let json = inert(&json);
    if json.len() <= PLAIN_LIMIT {
        let text = json.replace('<', "\\u003c");
        return Ok(Encoded {
            encoding: "plain",
            text,
        });
    }
    let text = base64(&deflated(json.as_bytes())?);
    Ok(Encoded {
        encoding: "deflate",
        text,
    })
}

fn deflated(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let level = flate2::Compression::new(6);
    let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), level);
    deflate.write_all(bytes)?;
    deflate.finish()
}

/// Text for the content of an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_has_each_mark_once_and_is_small() {
        assert_eq!(SHELL.matches(DATA_MARK).count(), 1);
        assert_eq!(SHELL.matches(TEXT_MARK).count(), 1);
        assert_eq!(SHELL.matches(BYTES_MARK).count(), 1);
        assert!(SHELL.len() <= 250_000, "{} bytes", SHELL.len());
    }
}
