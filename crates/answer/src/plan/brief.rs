//! Names of functions, short enough for a sentence.

/// Most characters of a name in a sentence.
const MOST: usize = 60;
/// What stays of the beginning of a name that is too long even without its parameters.
const BEGINNING: usize = 40;

/// The name as it is, or, if it is long, without what is in its brackets: parameters of templates and
/// functions.
pub(super) fn brief(name: &str) -> String {
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    let short = without_parameters(name);
    let all: Vec<char> = short.chars().collect();
    match all.len() <= MOST {
        true => short,
        false => {
            let start: String = all[..BEGINNING].iter().collect();
            let end: String = all[all.len() - (MOST - BEGINNING - 1)..].iter().collect();
            format!("{start}…{end}")
        }
    }
}

fn without_parameters(name: &str) -> String {
    let mut short = String::new();
    let mut depth = 0_usize;
    for letter in name.chars() {
        if matches!(letter, '>' | ')') {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            short.push(letter);
        }
        if matches!(letter, '<' | '(') {
            if depth == 0 {
                short.push('…');
            }
            depth += 1;
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_what_is_in_their_brackets() {
        let merge = "unsigned long* std::__move_merge<unsigned long*, __gnu_cxx::__ops::_Iter_comp_iter\
                     <arrow::Sorter<arrow::DoubleType>>>(unsigned long*, unsigned long*, unsigned long*)";
        assert_eq!(brief(merge), "unsigned long* std::__move_merge<…>(…)");
        assert_eq!(brief("work(int)"), "work(int)");
        assert_eq!(
            brief("std::map<int, int>::find"),
            "std::map<int, int>::find"
        );
        let endless = brief(&"step_".repeat(40));
        assert_eq!(endless.chars().count(), MOST);
        let unbalanced = brief(&format!("operator->>{}", "é".repeat(80)));
        assert_eq!(unbalanced.chars().count(), MOST);
    }
}
