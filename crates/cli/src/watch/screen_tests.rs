use super::*;
use pagewise_model::timeline::TimelinePoint;
use pagewise_model::units::Bytes;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const MIB: u64 = 1 << 20;

/// Ten seconds of 160,000 faults per second (churn) or of none, at 64 MiB.
fn screen_of(faults_per_point: u64) -> Screen<'static> {
    let mut screen = Screen::new("simulate input.dat", own_pid());
    for at in 0..=100 {
        let point = TimelinePoint {
            time: Nanos(at * 100_000_000),
            vsize: Bytes(80 * MIB),
            rss: Bytes(64 * MIB),
            minor_faults: 16_384 + at * faults_per_point,
            user: Nanos(at * 40_000_000),
            system: Nanos(at * 50_000_000),
            processes: 1,
            threads: 1,
            ..TimelinePoint::default()
        };
        let process = ProcessReading {
            pid: 4242,
            parent: 1,
            comm: "simulate".to_string(),
            state: 'R',
            threads: 1,
            vsize: point.vsize,
            rss: point.rss,
            minor_faults: point.minor_faults,
            major_faults: 0,
            user: point.user,
            system: point.system,
        };
        screen.take(&Reading {
            point,
            processes: vec![process],
            pressure: None,
        });
    }
    screen
}

fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap()
}

fn drawn(screen: &Screen<'_>, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::screen(frame, screen)).unwrap();
    let buffer = terminal.backend().buffer();
    let cells: Vec<&str> = buffer.content.iter().map(|cell| cell.symbol()).collect();
    let rows = cells.chunks(usize::from(width));
    rows.map(|row| row.concat().trim_end().to_string())
        .collect()
}

/// Height of the highest dot of a plot, in rows above its lowest, left half and right half.
fn heights(rows: &[String], plot: &str) -> (usize, usize) {
    let begin = rows.iter().position(|row| row.contains(plot)).unwrap() + 1;
    let end = rows[begin..]
        .iter()
        .position(|row| row.contains('━'))
        .unwrap()
        + begin;
    let highest = |range: std::ops::Range<usize>| {
        let is_dot = |c: char| ('\u{2801}'..='\u{28ff}').contains(&c);
        let in_row = |row: &String| {
            row.chars()
                .enumerate()
                .any(|(at, c)| range.contains(&at) && is_dot(c))
        };
        let first = rows[begin..end].iter().position(in_row);
        first.map_or(0, |first| end - begin - first)
    };
    (highest(10..20), highest(65..80))
}

#[test]
fn ever_rising_and_flat_look_different() {
    let mut churn = screen_of(16_384);
    let mut quiet = screen_of(0);
    churn.shows_total = true;
    quiet.shows_total = true;
    let (early, late) = heights(&drawn(&churn, 80, 24), "faults in total");
    assert!(late > early, "rising: {early} then {late}");
    let (early, late) = heights(&drawn(&quiet, 80, 24), "faults in total");
    assert_eq!(early, late, "flat");
}

#[test]
fn churn_is_told_in_words_and_calm_is_not() {
    let has_hint = |screen: &Screen<'_>| {
        drawn(screen, 80, 24)
            .iter()
            .any(|row| row.contains("newly touched and not kept"))
    };
    assert!(has_hint(&screen_of(16_384)));
    assert!(!has_hint(&screen_of(100)));
}

#[test]
fn any_size_of_terminal_is_drawn() {
    let mut screen = screen_of(5);
    for (width, height) in [(1, 1), (10, 4), (20, 8), (80, 24), (120, 40), (300, 100)] {
        for _ in 0..8 {
            screen.shows_help = !screen.shows_help;
            assert_eq!(drawn(&screen, width, height).len(), usize::from(height));
            screen.shows_table = screen.shows_help != screen.shows_table;
        }
    }
    let empty = Screen::new("simulate input.dat", own_pid());
    assert!(drawn(&empty, 80, 24)[0].contains("no reading yet"));
}

#[test]
fn keys_do_what_the_help_says() {
    let mut screen = screen_of(5);
    let press = |screen: &mut Screen<'_>, code| {
        matches!(
            screen.press(KeyEvent::new(code, KeyModifiers::NONE)),
            Wish::Quit
        )
    };
    assert!(!press(&mut screen, KeyCode::Char(' ')));
    assert!(screen.view.is_paused());
    assert!(drawn(&screen, 80, 24)[23].contains("PAUSED"));
    press(&mut screen, KeyCode::End);
    assert!(!screen.view.is_paused());
    press(&mut screen, KeyCode::Char('t'));
    let rows = drawn(&screen, 100, 30);
    let line = rows
        .iter()
        .find(|row| row.contains("4242") && row.contains("simulate"));
    assert!(line.unwrap().contains("90%"), "user and system together");
    assert!(press(&mut screen, KeyCode::Char('q')));
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert!(matches!(screen.press(interrupt), Wish::Quit));
}
