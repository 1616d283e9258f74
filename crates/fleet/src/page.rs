//! An answer as one HTML file that opens offline: Pagewise's page, with the answer's tables.

use crate::answer::{Answer, Flame};
use anyhow::{Context, Result};
use pagewise_model::profile::Profile;
use pagewise_report::html::render_sheets_of;
use pagewise_report::html::sheets::{Said, Sheets};
use std::fs;
use std::path::Path;

/// Writes the page of an answer.
pub fn write(path: &Path, answer: &Answer) -> Result<()> {
    fs::write(path, page(answer)?).with_context(|| format!("cannot write {}", path.display()))
}

fn page(answer: &Answer) -> Result<String> {
    let tables = answer.tables.iter().enumerate();
    let mut sheets: Vec<_> = tables
        .map(|(number, table)| table.sheet(number + 1))
        .collect();
    sheets.extend(answer.details.iter().map(|table| table.sheet(0)));
    let sheets = Sheets {
        badge: answer.badge.clone(),
        tiles: answer.tiles.clone(),
        sheets,
    };
    let subject = answer.kind.replace('_', " ");
    let text = answer.text();
    let said = Said {
        subject: &subject,
        verdict: &answer.verdict,
        losses: answer.left_out(),
        notes: &answer.notes,
        text: &text,
    };
    let profiles: Vec<(&Profile, &str)> = match &answer.flame {
        None => Vec::new(),
        Some(Flame::Of(name, profile)) => vec![(&**profile, &**name)],
        Some(Flame::Change(sides)) => sides
            .iter()
            .map(|(name, profile)| (profile, &**name))
            .collect(),
    };
    Ok(render_sheets_of(&said, &sheets, &profiles)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Table;

    #[test]
    fn no_name_becomes_markup() {
        let name = "</script><b>std::vec<T> & more".to_owned();
        let rows = vec![vec!["3".into(), name.clone().into()]];
        let table = Table::new("Functions <all>", &["hosts", "function"], rows);
        let evidence = serde_json::json!({ "function": name });
        let answer = Answer::new("fleet_top", name, &evidence, vec![table]);
        let page = page(&answer).unwrap();
        assert!(!page.contains("<b>std") && !page.contains("</script><b"));
        assert!(page.contains("\\u003c/script>\\u003cb>std::vec"));
        assert!(page.contains("&lt;/script&gt;&lt;b&gt;std::vec&lt;T&gt; &amp; more"));
    }
}
