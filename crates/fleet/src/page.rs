//! An answer as one HTML file that opens offline: the verdict, the tables, the flame graph, what is
//! missing, and the document itself for other tools. Colours and type are those of all of Pagewise's
//! pages (web/src/style.css). No script but the flame graph's own, and nothing is fetched.

use crate::answer::Answer;
use crate::text::Table;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::Path;

const STYLE: &str = include_str!("page.css");

/// Writes the page of an answer.
pub fn write(path: &Path, answer: &Answer) -> Result<()> {
    fs::write(path, page(answer)?).with_context(|| format!("cannot write {}", path.display()))
}

fn page(answer: &Answer) -> Result<String> {
    let mut out = String::new();
    let command = answer.kind.replace('_', " ");
    let verdict = escaped(&answer.verdict);
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Pagewise {command}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <header><b>Pagewise</b> <span>{command}</span></header>\n<main>\n<h1>{verdict}</h1>\n"
    )?;
    for table in &answer.tables {
        section(&mut out, table)?;
    }
    if let Some(flame) = &answer.flame {
        let picture = flame.split_once("?>").map_or(&**flame, |(_, rest)| rest);
        writeln!(
            out,
            "<section><h2>Flame graph</h2><div class=\"wide\">{picture}</div></section>"
        )?;
    }
    rest(&mut out, answer)?;
    let document = serde_json::to_string(answer)?.replace('<', "\\u003c");
    write!(
        out,
        "</main>\n<script type=\"application/json\" id=\"pagewise-data\">{document}</script>\n\
         </body>\n</html>\n"
    )?;
    Ok(out)
}

fn section(out: &mut String, table: &Table) -> Result<()> {
    out.push_str("<section>");
    if let Some(title) = &table.title {
        write!(out, "<h2>{}</h2>", escaped(title))?;
    }
    let numbers: Vec<bool> = (0..table.heads.len())
        .map(|column| table.is_of_numbers(column))
        .collect();
    // A word that says little without its head, such as a risk; names stand for themselves.
    let is_short = |column: usize| {
        let mut cells = table.rows.iter().map(|row| &row[column]);
        column > 0 && !table.heads[column].is_empty() && cells.all(|cell| cell.len() < 8)
    };
    let shorts: Vec<bool> = (0..table.heads.len()).map(is_short).collect();
    let class = |column: usize| match (numbers[column], shorts[column]) {
        (true, _) => " class=\"number\"",
        (_, true) => " class=\"short\"",
        _ => "",
    };
    out.push_str("<div class=\"wide\"><table><thead><tr>");
    for (column, head) in table.heads.iter().enumerate() {
        write!(out, "<th{}>{}</th>", class(column), escaped(head))?;
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            // On a narrow screen, where there is no head, each number has its own.
            let head = escaped(&table.heads[column]).replace('"', "&quot;");
            let (class, cell) = (class(column), escaped(cell));
            write!(out, "<td{class} data-head=\"{head}\">{cell}</td>")?;
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>");
    if table.more > 0 {
        write!(
            out,
            "<p class=\"faint\">… and {} more (--rows)</p>",
            table.more
        )?;
    }
    out.push_str("</section>\n");
    Ok(())
}

/// Files that were left out, and notes.
fn rest(out: &mut String, answer: &Answer) -> Result<()> {
    let files = &answer.losses.files;
    if !files.is_empty() {
        let title = format!("Left out: {} files that cannot be used", files.len());
        let rows = files
            .iter()
            .map(|file| vec![file.path.clone(), file.reason.clone()]);
        let table = Table::new(&title, &["file", "why"], rows.collect());
        section(out, &table)?;
    }
    if !answer.notes.is_empty() {
        out.push_str("<section><h2>Notes</h2>");
        for note in &answer.notes {
            write!(out, "<p>{}</p>", escaped(note))?;
        }
        out.push_str("</section>\n");
    }
    Ok(())
}

/// Text for the content of an element.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_becomes_markup() {
        let name = "</script><b>std::vec<T> & more".to_owned();
        let table = Table::new(
            "Functions <all>",
            &["hosts", "function"],
            vec![vec!["3".to_owned(), name.clone()]],
        );
        let evidence = serde_json::json!({ "function": name });
        let answer = Answer::new("fleet_top", name.clone(), &evidence, vec![table]);
        let page = page(&answer).unwrap();
        assert!(!page.contains("<b>std") && !page.contains("</script><"));
        assert_eq!(
            page.matches("&lt;/script&gt;&lt;b&gt;std::vec&lt;T&gt; &amp; more")
                .count(),
            2
        );
        assert!(page.contains("<h2>Functions &lt;all&gt;</h2>"));
        assert!(page.contains("<td class=\"number\" data-head=\"hosts\">3</td>"));
        let from = page.find("id=\"pagewise-data\">").unwrap() + 19;
        let json = &page[from..from + page[from..].find("</script>").unwrap()];
        let document: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(document["evidence"]["fleet_top"]["function"], name);
        assert!(!page.contains("http:") && !page.contains("https:"));
    }
}
