//! One line on standard error with the current progress; nothing if that is not a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::cell::OnceCell;
use std::time::Duration;

/// The line, created by the first message.
#[derive(Default)]
pub struct Progress(OnceCell<ProgressBar>);

impl Progress {
    /// Visible only on a terminal.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows the current step.
    pub fn show(&self, message: &str) {
        self.0.get_or_init(spinner).set_message(message.to_owned());
    }

    /// A listener that shows each message.
    pub fn listener(&self) -> impl Fn(&str) + '_ {
        |message| self.show(message)
    }

    /// Removes the line.
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
