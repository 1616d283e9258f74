//! Every fixture is read without an unknown line, and has as many calls and ends of calls as a
//! plain search for `();`, `() {` and `}` finds.

use pagewise_model::formats::function_graph::{Content, Parser, looks_like};
use std::path::Path;

#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    leaves: usize,
    opens: usize,
    closes: usize,
    with_duration: usize,
}

fn parsed(text: &[u8]) -> (Found, u64) {
    let mut found = Found::default();
    let mut parser = Parser::new();
    parser.feed(text, |line, _| {
        match line.content {
            Content::Leaf(_) => found.leaves += 1,
            Content::Open(_) => found.opens += 1,
            Content::Close(_) => found.closes += 1,
            _ => {}
        }
        found.with_duration += usize::from(line.span.is_some());
    });
    (found, parser.counts().unknown_lines)
}

fn searched(text: &str) -> Found {
    let of = |wanted: &dyn Fn(&str) -> bool| text.lines().filter(|line| wanted(line)).count();
    let call = |line: &str| line.rsplit('|').next().unwrap_or(line).trim().to_owned();
    Found {
        leaves: of(&|line| line.ends_with("();")),
        opens: of(&|line| line.ends_with("() {")),
        closes: of(&|line| call(line).starts_with('}')),
        with_duration: of(&|line| line.contains(" us ")),
    }
}

#[test]
fn every_fixture_is_understood() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/function_graph");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the fixtures").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a fixture");
        let (found, unknown) = parsed(text.as_bytes());
        let name = path.display();
        assert_eq!(unknown, 0, "{name}");
        assert_eq!(found, searched(&text), "{name}");
        assert!(looks_like(text.as_bytes()), "{name}");
        count += 1;
    }
    assert_eq!(count, 23);
}
