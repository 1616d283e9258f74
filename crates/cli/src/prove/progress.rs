//! One line on standard error that says where the experiment is; nothing when that is no terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// The line.
pub struct Progress(ProgressBar);

impl Progress {
    /// Shows itself on a terminal only.
    #[must_use]
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>4} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Self(bar)
    }

    /// Says what happens now.
    pub fn show(&self, message: &str) {
        self.0.set_message(message.to_owned());
    }

    /// Takes the line away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
