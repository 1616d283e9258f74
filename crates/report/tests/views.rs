//! Every view at every width: nothing is cut, and no word or figure is broken.

use pagewise_model::answer::Document;
use pagewise_model::tuning::Tuning;
use pagewise_report::html;
use pagewise_report::text::{self, Style};
use serde::de::DeserializeOwned;
use std::path::Path;

mod sample;

/// A small terminal, the usual one, a wide one.
const WIDTHS: [usize; 3] = [60, 80, 200];

/// A view of a document.
type View = Box<dyn Fn(usize) -> String>;

fn fixture(name: &str) -> Vec<u8> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    std::fs::read(tests.join(name)).expect("the fixture is there")
}

/// The answer of the analysis for the traces in `tests/fixtures/traces`.
fn answer(name: &str) -> Vec<u8> {
    let answers = "../answer/tests/fixtures/answers";
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(answers)
        .join(name);
    let packed = std::fs::read(path).expect("the answer is there");
    zstd::decode_all(&packed[..]).expect("it is whole")
}

fn view<T: DeserializeOwned + 'static>(
    bytes: &[u8],
    render: fn(&T, usize, Style) -> String,
) -> View {
    let document: T = serde_json::from_slice(bytes).expect("the document is whole");
    Box::new(move |width| render(&document, width, Style::PLAIN))
}

fn views() -> Vec<(&'static str, View)> {
    let path = |name: &str| {
        view(
            &answer(&format!("{name}.json.zst")),
            text::fault_paths::render,
        )
    };
    vec![
        (
            "bench alloc",
            view(&fixture("allocator_bench.json"), text::bench_alloc::render),
        ),
        (
            "bench faults",
            view(&fixture("fault_bench.json"), text::bench_faults::render),
        ),
        ("check", view(&fixture("check.json"), text::check::render)),
        (
            "huge balance",
            view(&fixture("huge_balance.json"), text::huge_balance::render),
        ),
        (
            "huge probe",
            view(&fixture("huge_probe.json"), text::huge_probe::render),
        ),
        (
            "huge simulate",
            view(
                &fixture("huge_simulation.json"),
                text::huge_simulation::render,
            ),
        ),
        (
            "run",
            view(&fixture("paged_run.json"), text::paged_run::render),
        ),
        (
            "timeline",
            view(
                &fixture("paging_timeline.json"),
                text::paging_timeline::render,
            ),
        ),
        (
            "run --simulate",
            view(
                &fixture("paging_simulation.json"),
                text::paging_simulation::render,
            ),
        ),
        ("tune", view(&fixture("tuning.json"), text::tune::render)),
        ("paths of redis", path("redis-6.1")),
        ("paths of contention", path("contend-6.1")),
        ("paths on 4.18", path("anon-4.18")),
        ("paths inside a function", path("redis-part-inside")),
        (
            "two kernels",
            view(&answer("kernels-diff.json.zst"), text::fault_diff::render),
        ),
        (
            "profile",
            view(&answer("allocator-profile.json.zst"), text::profile::render),
        ),
        (
            "two runs",
            view(&answer("kinds-churn-runs.json.zst"), text::run_diff::render),
        ),
        ("doctor", view(&answer("churn.json.zst"), text::render)),
    ]
}

/// Commands, settings and names without spaces may be wider than the page.
fn may_be_wide(line: &str) -> bool {
    let words = line.trim_start_matches([' ', '•', '-']);
    !words.contains("  ") && words.split(' ').count() <= 2 || line.starts_with("             ")
}

#[test]
fn no_view_is_wider_than_its_page() {
    for (name, view) in views() {
        for width in WIDTHS {
            let text = view(width);
            for line in text.lines().filter(|line| !may_be_wide(line)) {
                let columns = line.chars().count();
                assert!(columns <= width, "{name}: {columns} of {width}: {line}");
            }
        }
    }
}

/// Units and intervals, which belong to the figure before them.
fn is_half_of_a_figure(line: &str) -> bool {
    let first = line.split([' ', ',', '.', ';', ')']).next().unwrap_or("");
    matches!(
        first,
        "%" | "ns" | "µs" | "ms" | "s" | "KiB" | "MiB" | "GiB" | "±"
    ) || first.ends_with(']') && !first.contains('[')
}

#[test]
fn no_view_breaks_a_figure_or_a_word() {
    for (name, view) in views() {
        let wide = view(WIDTHS[2]);
        let known: std::collections::BTreeSet<&str> = wide.split_whitespace().collect();
        for width in WIDTHS {
            let text = view(width);
            for line in text.lines() {
                let half = is_half_of_a_figure(line.trim_start());
                assert!(!half, "{name} at {width}: {line}\n{text}");
            }
            for word in text.split_whitespace().filter(|word| !is_drawn(word)) {
                let is_part =
                    |known: &&str| known.chars().count() > width - 14 && known.contains(word);
                let whole = known.contains(word) || known.iter().any(is_part);
                assert!(whole, "{name} at {width}: {word}");
            }
        }
    }
}

/// Bars and plots fill their space, and names that are cut show that.
fn is_drawn(word: &str) -> bool {
    word.contains(['│', '─', '▁', '█', '…', '←']) || word.chars().all(|c| !c.is_alphanumeric())
}

/// If `VIEWS` names a folder, the texts are written there for inspection.
#[test]
fn views_can_be_looked_at() {
    let Some(folder) = std::env::var_os("VIEWS") else {
        return;
    };
    for (name, view) in views() {
        for width in WIDTHS {
            let path = Path::new(&folder).join(format!("{}.{width}", name.replace(' ', "-")));
            std::fs::write(path, view(width)).expect("the folder can be written");
        }
    }
}

#[test]
fn a_tune_that_tried_nothing_shows_no_figures() {
    let mut document: Document<Tuning> =
        serde_json::from_slice(&fixture("tuning.json")).expect("the document is whole");
    document.evidence.comparisons.clear();
    document.evidence.time_and_memory.clear();
    let text = text::tune::render(&document, 100, Style::PLAIN);
    assert!(
        !text.contains("Settings tried") && !text.contains("Time against memory"),
        "{text}"
    );
    let page = html::render_tuning(&document, &text).expect("encodes");
    assert!(page.contains("Nothing tried") && !page.contains("Nothing faster"));
}
