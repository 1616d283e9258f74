//! One line on standard error that says what happens; nothing when that is no terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::cell::OnceCell;
use std::time::Duration;

/// The line, from the first thing that is said on.
#[derive(Default)]
pub struct Progress(OnceCell<ProgressBar>);

impl Progress {
    /// Shows itself on a terminal only.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says what happens now.
    pub fn show(&self, message: &str) {
        self.0.get_or_init(spinner).set_message(message.to_owned());
    }

    /// Says what it hears.
    pub fn listener(&self) -> impl Fn(&str) + '_ {
        |message| self.show(message)
    }

    /// Takes the line away.
    pub fn finish(&self) {
        if let Some(bar) = self.0.get() {
            bar.finish_and_clear();
        }
    }
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>4} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
