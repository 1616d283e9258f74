//! The live view: takes readings and keys, and draws at most ten times per second.
//!
//! The terminal is restored in every case: by a panic hook (`ratatui::init`), on signals because
//! they only set a flag that the loop checks, and on errors because the loop's result is passed on
//! after the terminal is restored.

mod draw;
mod keyboard;
mod table;

use super::Sinks;
use crate::terminal;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use keyboard::{Keyboard, Wait};
use pagewise_linux::proc::ProcessReading;
use pagewise_linux::process::interrupt;
use pagewise_model::units::Nanos;
use pagewise_operate::watch::{End, History, Reading, View};
use ratatui::DefaultTerminal;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use table::Processes;

/// Interval of checks of the keyboard and the readings.
const BEAT: Duration = Duration::from_millis(50);

/// Everything that is drawn.
pub struct Screen<'a> {
    /// The command line, or the process's name.
    name: &'a str,
    pid: i32,
    history: History,
    view: View,
    processes: Processes,
    shows_total: bool,
    shows_table: bool,
    shows_help: bool,
    ended: bool,
    colours: bool,
}

/// The action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Quit,
    Nothing,
}

/// Shows the live view until the user quits or the time is up. When the processes end, the view
/// stays, so that it can be read.
pub fn show(
    name: &str,
    pid: i32,
    readings: &Receiver<Reading>,
    sinks: &mut Sinks,
    duration: Option<Duration>,
) -> anyhow::Result<End> {
    let mut screen = Screen::new(name, pid);
    let mut terminal = ratatui::try_init()?;
    let end = run(&mut terminal, &mut screen, readings, sinks, duration);
    ratatui::restore();
    end
}

fn run(
    terminal: &mut DefaultTerminal,
    screen: &mut Screen<'_>,
    readings: &Receiver<Reading>,
    sinks: &mut Sinks,
    duration: Option<Duration>,
) -> anyhow::Result<End> {
    let deadline = duration.map(|duration| Instant::now() + duration);
    let keyboard = Keyboard::open()?;
    loop {
        for reading in readings.try_iter() {
            sinks.take(&reading)?;
            screen.take(&reading);
        }
        terminal.draw(|frame| draw::screen(frame, screen))?;
        match keyboard.wait(BEAT * 2)? {
            Wait::Silence => {}
            Wait::Gone => return Ok(screen.end(End::Asked)),
            Wait::Keys => {
                while event::poll(Duration::ZERO)? {
                    if let Event::Key(key) = event::read()?
                        && screen.press(key) == Wish::Quit
                    {
                        return Ok(screen.end(End::Asked));
                    }
                }
            }
        }
        if interrupt::requested().is_some() {
            return Ok(screen.end(End::Asked));
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok(screen.end(End::TimeIsUp));
        }
    }
}

impl<'a> Screen<'a> {
    fn new(name: &'a str, pid: i32) -> Self {
        Self {
            name,
            pid,
            history: History::default(),
            view: View::default(),
            processes: Processes::default(),
            shows_total: false,
            shows_table: false,
            shows_help: false,
            ended: false,
            colours: terminal::has_colours(),
        }
    }

    fn take(&mut self, reading: &Reading) {
        self.history.push(reading.point);
        self.processes.take(reading.point.time, &reading.processes);
        self.ended = reading.point.processes == 0;
    }

    /// Time of the newest reading.
    fn now(&self) -> Nanos {
        self.history.last().map_or(Nanos(0), |point| point.time)
    }

    /// If the tree has ended, that is the reason for stopping, not the user's request.
    fn end(&self, otherwise: End) -> End {
        match self.ended {
            true => End::TreeEnded,
            false => otherwise,
        }
    }

    fn press(&mut self, key: KeyEvent) -> Wish {
        let now = self.now();
        if key.kind == KeyEventKind::Release {
            return Wish::Nothing;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Wish::Quit,
            KeyCode::Char('q') => return Wish::Quit,
            KeyCode::Esc if self.shows_help => self.shows_help = false,
            KeyCode::Char(' ' | 'p') => self.view.toggle_pause(now),
            KeyCode::Char('+' | '=') => self.view.zoom_in(now),
            KeyCode::Char('-') => self.view.zoom_out(now),
            KeyCode::Left | KeyCode::Char('h') => self.view.scroll_back(now),
            KeyCode::Right | KeyCode::Char('l') => self.view.scroll_forward(now),
            KeyCode::End | KeyCode::Char('0') => self.view.follow(),
            KeyCode::Char('f') => self.shows_total = !self.shows_total,
            KeyCode::Char('t') => self.shows_table = !self.shows_table,
            KeyCode::Char('?') => self.shows_help = !self.shows_help,
            _ => {}
        }
        Wish::Nothing
    }

    /// Whether the tree faults in far more memory than it ever has resident: the touched memory
    /// must be released and allocated again. Covers the last five seconds.
    fn churns(&self, page_size: u64) -> Option<Churning> {
        let last = self.history.last()?;
        let stretch = Nanos(5 * Nanos::SECOND.0);
        let before = self.history.at(last.time - stretch)?;
        let seconds = (last.time - before.time).as_secs_f64();
        let pages = last.minor_faults - before.minor_faults;
        let touched = pages.saturating_mul(page_size);
        let held = last.rss.0.max(before.rss.0).max(1);
        (seconds > 1.0 && touched / held >= CHURN_FACTOR).then(|| Churning {
            bytes_per_s: Nanos::from_secs_f64(as_f64(touched) / seconds / 1e9).0,
        })
    }
}

/// This many times the resident memory must be faulted in within five seconds to count as churn:
/// start-up touches each page once, and a few generations of short-lived children some times more.
const CHURN_FACTOR: u64 = 4;

/// Memory that is allocated again and again.
struct Churning {
    bytes_per_s: u64,
}

fn as_f64(number: u64) -> f64 {
    number as f64
}

/// Processes in the form that the table uses.
type ProcessList = [ProcessReading];

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
