use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn database(sequences: &[&str]) -> Database {
    let mut builder = Builder::new();
    for sequence in sequences {
        let letters: Vec<String> = sequence.chars().map(String::from).collect();
        builder.push(letters.iter().map(String::as_str));
    }
    builder.finish()
}

/// Table 1 of the paper.
fn table_1() -> Database {
    database(&["abcd", "cabc", "acbac"])
}

fn shown(database: &Database, algorithm: Algorithm, min_support: u64) -> String {
    let query = Query {
        algorithm,
        min_support,
        max_length: None,
    };
    let show =
        |pattern: &Pattern| format!("{}:{}", text(database, &pattern.items), pattern.support);
    patterns(database, query)
        .iter()
        .map(show)
        .collect::<Vec<_>>()
        .join(" ")
}

fn text(database: &Database, items: &[Item]) -> String {
    items.iter().map(|&item| database.name(item)).collect()
}

#[test]
fn algorithm_1_on_table_1() {
    assert_eq!(shown(&table_1(), Algorithm::Prefix, 2), "a:2");
    assert_eq!(
        shown(&table_1(), Algorithm::Prefix, 1),
        "a:2 ab:1 abc:1 abcd:1 ac:1 acb:1 acba:1 acbac:1 c:1 ca:1 cab:1 cabc:1"
    );
}

#[test]
fn a_support_of_zero_is_one() {
    for algorithm in [
        Algorithm::Prefix,
        Algorithm::Classic,
        Algorithm::Closed,
        Algorithm::Maximal,
        Algorithm::Contiguous,
        Algorithm::Suffixes,
    ] {
        let (none, one) = (
            shown(&table_1(), algorithm, 0),
            shown(&table_1(), algorithm, 1),
        );
        assert_eq!(none, one, "{algorithm:?}");
    }
}

#[test]
fn classic_prefixspan_on_table_1() {
    assert_eq!(
        shown(&table_1(), Algorithm::Classic, 2),
        "a:3 ab:3 abc:3 ac:3 b:3 bc:3 c:3 ca:2 cac:2 cb:2 cbc:2 cc:2"
    );
    // PrefixSpan-py also reports ac:3 as closed.
    assert_eq!(shown(&table_1(), Algorithm::Closed, 2), "abc:3 cac:2 cbc:2");
    assert_eq!(
        shown(&table_1(), Algorithm::Maximal, 2),
        "abc:3 cac:2 cbc:2"
    );
}

#[test]
fn substrings_on_table_1() {
    assert_eq!(
        shown(&table_1(), Algorithm::Contiguous, 2),
        "a:3 ab:2 abc:2 b:3 bc:2 c:3"
    );
    assert_eq!(
        shown(&table_1(), Algorithm::Suffixes, 2),
        "a:4 ab:2 abc:2 ac:2 b:3 bc:2 c:5"
    );
}

#[test]
fn projection_of_table_2() {
    let database = table_1();
    let a = database.item("a").expect("an item");
    let of = |algorithm| {
        let remainders = project(&database, algorithm, &[a]);
        let texts = remainders.iter().map(|(rest, _)| text(&database, rest));
        texts.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of(Algorithm::Classic), "bcd bc cbac");
    assert_eq!(of(Algorithm::Prefix), "bcd cbac");
    assert_eq!(of(Algorithm::Contiguous), "bcd bc cbac c");
}

#[test]
fn ends_tell_complete_sequences_from_those_that_go_on() {
    let database = database(&["ab", "abc", "ab"]);
    let tree = PrefixTree::new(&database);
    let counts: Vec<(u64, u64)> = tree.nodes().iter().map(|n| (n.support, n.ends)).collect();
    assert_eq!(counts, [(3, 0), (3, 0), (3, 2), (1, 1)]);
}

#[test]
fn numbers_come_before_words_and_by_value() {
    let mut builder = Builder::new();
    builder.push(["b", "10", "9", "a"]);
    let database = builder.finish();
    let names: Vec<&str> = (0..4).map(|item| database.name(item)).collect();
    assert_eq!(names, ["9", "10", "a", "b"]);
}

#[test]
fn a_long_sequence_needs_no_deep_recursion() {
    let mut builder = Builder::new();
    builder.push(std::iter::repeat_n("a", 30_000));
    let database = builder.finish();
    let query = Query {
        algorithm: Algorithm::Prefix,
        min_support: 1,
        max_length: None,
    };
    let mut longest = 0;
    mine(&database, query, |items, _| {
        longest = longest.max(items.len())
    });
    assert_eq!(longest, 30_000);
}

type Counts = BTreeMap<Vec<Item>, u64>;

fn all(database: &Database) -> Vec<Vec<Item>> {
    database
        .sequences()
        .flat_map(|(items, weight)| (0..weight).map(|_| items.to_vec()))
        .collect()
}

/// The pseudo-code of Algorithm 1, literally.
fn literal_algorithm_1(
    sequences: &[Vec<Item>],
    min_support: u64,
    prefix: &[Item],
    out: &mut Counts,
) {
    let mut counter = Counts::new();
    for sequence in sequences.iter().filter(|s| !s.is_empty()) {
        *counter.entry(vec![sequence[0]]).or_default() += 1;
    }
    for (first, count) in counter
        .into_iter()
        .filter(|(_, count)| *count >= min_support)
    {
        let new_prefix = [prefix, &first].concat();
        out.insert(new_prefix.clone(), count);
        let projected: Vec<Vec<Item>> = sequences
            .iter()
            .filter(|s| s.first() == Some(&first[0]) && s.len() > 1)
            .map(|s| s[1..].to_vec())
            .collect();
        if !projected.is_empty() {
            literal_algorithm_1(&projected, min_support, &new_prefix, out);
        }
    }
}

fn subsequences(sequence: &[Item]) -> BTreeSet<Vec<Item>> {
    let mut found = BTreeSet::from([Vec::new()]);
    for &item in sequence {
        let longer: Vec<Vec<Item>> = found
            .iter()
            .map(|s| [s.as_slice(), &[item]].concat())
            .collect();
        found.extend(longer);
    }
    found.remove(&Vec::new());
    found
}

fn substrings(sequence: &[Item]) -> Vec<Vec<Item>> {
    let ends = |start: usize| (start + 1..=sequence.len()).map(move |end| (start, end));
    let ranges = (0..sequence.len()).flat_map(ends);
    ranges
        .map(|(start, end)| sequence[start..end].to_vec())
        .collect()
}

fn count(patterns: impl Iterator<Item = Vec<Item>>, min_support: u64) -> Counts {
    let mut counts = Counts::new();
    for pattern in patterns {
        *counts.entry(pattern).or_default() += 1;
    }
    counts.retain(|_, count| *count >= min_support);
    counts
}

fn holds(sequence: &[Item], pattern: &[Item]) -> bool {
    let mut rest = sequence.iter();
    pattern.iter().all(|item| rest.any(|next| next == item))
}

fn naive(sequences: &[Vec<Item>], algorithm: Algorithm, min_support: u64) -> Counts {
    let classic = || count(sequences.iter().flat_map(|s| subsequences(s)), min_support);
    let without_longer = |drop: &dyn Fn(u64, u64) -> bool| {
        let all = classic();
        let longer = |p: &[Item], n: u64| {
            all.iter()
                .any(|(q, &m)| q.len() > p.len() && holds(q, p) && drop(n, m))
        };
        all.iter()
            .filter(|(p, n)| !longer(p, **n))
            .map(|(p, &n)| (p.clone(), n))
            .collect()
    };
    match algorithm {
        Algorithm::Prefix => {
            let mut out = Counts::new();
            literal_algorithm_1(sequences, min_support, &[], &mut out);
            out
        }
        Algorithm::Classic => classic(),
        Algorithm::Closed => without_longer(&|n, m| n == m),
        Algorithm::Maximal => without_longer(&|_, _| true),
        Algorithm::Contiguous => {
            let distinct = |s: &Vec<Item>| substrings(s).into_iter().collect::<BTreeSet<_>>();
            count(sequences.iter().flat_map(distinct), min_support)
        }
        Algorithm::Suffixes => count(sequences.iter().flat_map(|s| substrings(s)), min_support),
    }
}

const ALL: [Algorithm; 6] = [
    Algorithm::Prefix,
    Algorithm::Classic,
    Algorithm::Closed,
    Algorithm::Maximal,
    Algorithm::Contiguous,
    Algorithm::Suffixes,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_algorithm_equals_its_naive_twin(
        sequences in prop::collection::vec("[abcd]{0,7}", 0..7),
        min_support in 1_u64..5,
    ) {
        let sequences: Vec<&str> = sequences.iter().map(String::as_str).collect();
        let database = database(&sequences);
        for algorithm in ALL {
            let query = Query { algorithm, min_support, max_length: None };
            let found = patterns(&database, query);
            let expected: Vec<Pattern> = naive(&all(&database), algorithm, min_support)
                .into_iter()
                .map(|(items, support)| Pattern { items, support })
                .collect();
            prop_assert_eq!(found, expected, "{:?}", algorithm);
        }
    }

    #[test]
    fn a_length_limit_drops_only_longer_patterns(
        sequences in prop::collection::vec("[abc]{0,7}", 1..6),
        limit in 1_usize..4,
    ) {
        let sequences: Vec<&str> = sequences.iter().map(String::as_str).collect();
        let database = database(&sequences);
        for algorithm in ALL {
            let query = Query { algorithm, min_support: 2, max_length: None };
            let mut expected = patterns(&database, query);
            expected.retain(|pattern| pattern.items.len() <= limit);
            let limited = Query { max_length: Some(limit), ..query };
            prop_assert_eq!(patterns(&database, limited), expected, "{:?}", algorithm);
        }
    }
}
