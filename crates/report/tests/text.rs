//! The terminal summary compared with files in `tests/golden/`; `UPDATE_GOLDEN=1 cargo test`
//! rewrites them, and a reviewer reads the diff.

use pagewise_report::text::{Style, render};
use std::path::Path;

mod sample;

const PLAIN: Style = Style {
    color: false,
    unicode: true,
};

fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file is there");
    assert_eq!(
        text,
        golden,
        "{} differs; UPDATE_GOLDEN=1 accepts the change",
        path.display()
    );
}

#[test]
fn churning_at_100_columns() {
    assert_golden("churning.100.txt", &render(&sample::churning(), 100, PLAIN));
}

#[test]
fn churning_at_60_columns_in_ascii() {
    let style = Style {
        color: false,
        unicode: false,
    };
    let text = render(&sample::churning(), 60, style);
    assert!(text.is_ascii());
    assert_golden("churning.60.txt", &text);
}

#[test]
fn churning_in_colour() {
    let style = Style {
        color: true,
        unicode: true,
    };
    assert_golden(
        "churning.color.txt",
        &render(&sample::churning(), 120, style),
    );
}

#[test]
fn healthy_says_so_and_offers_no_fix() {
    let text = render(&sample::healthy(), 100, PLAIN);
    assert!(!text.contains("Fix") && !text.contains("export"));
    assert_golden("healthy.100.txt", &text);
}

#[test]
fn bare_findings_still_make_a_page() {
    assert_golden("bare.100.txt", &render(&sample::bare(), 100, PLAIN));
}

#[test]
fn no_line_is_wider_than_asked_but_settings() {
    for width in [60, 72, 100, 133, 200] {
        let text = render(&sample::churning(), width, PLAIN);
        let wide: Vec<&str> = text
            .lines()
            .filter(|line| line.chars().count() > width && !line.contains("export "))
            .collect();
        assert_eq!(wide, [""; 0], "at {width} columns");
    }
}

#[test]
fn names_cannot_drive_the_terminal() {
    for color in [false, true] {
        let style = Style {
            color,
            unicode: true,
        };
        let text = render(&sample::hostile(), 200, style);
        let ours = text
            .replace("\u{1b}[0m", "")
            .replace("\u{1b}[1", "")
            .replace("\u{1b}[2m", "");
        let ours = ours.replace("\u{1b}[36m", "");
        let active: Vec<char> = ours
            .chars()
            .filter(|&c| c != '\n' && (c.is_control() || c == '\u{202e}'))
            .collect();
        assert_eq!(active, [], "color: {color}");
        assert!(text.contains("\\u{1b}[31mred\\u{7}\\u{202e}txt.exe\\u{0}"));
    }
}
