//! Conditions on runs, as users write them.

/// `day=2026-11-22` as SQL; anything else is SQL already. `has` says whether any run has a value, and nothing
/// where there is no such column.
pub fn predicate(condition: &str, has: impl Fn(&str, &str) -> Option<bool>) -> String {
    let quoted = |text: &str, mark: char| {
        let twice = format!("{mark}{mark}");
        format!("{mark}{}{mark}", text.replace(mark, &twice))
    };
    let is_word = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_alphanumeric() || "_.:-+".contains(c))
    };
    match condition.split_once('=') {
        Some((key, value)) if is_word(key) && (is_word(value) || has(key, value) == Some(true)) => {
            format!("{} = {}", quoted(key, '"'), quoted(value, '\''))
        }
        _ => condition.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_becomes_a_condition_and_sql_stays() {
        let sql = |condition| predicate(condition, |_, value| Some(value == "O'Neill, 2 GHz"));
        assert_eq!(sql("day=2026-11-22"), "\"day\" = '2026-11-22'");
        assert_eq!(sql("kernel like '6.12%'"), "kernel like '6.12%'");
        assert_eq!(sql("a = 'b' or c = 'd'"), "a = 'b' or c = 'd'");
        assert_eq!(sql("role='db' OR 1=1"), "role='db' OR 1=1");
        assert_eq!(sql("cpu=O'Neill, 2 GHz"), "\"cpu\" = 'O''Neill, 2 GHz'");
    }
}
