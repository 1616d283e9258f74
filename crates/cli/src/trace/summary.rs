//! What a capture tells about itself, in words.

use super::choice::Choice;
use super::cost::{Cost, Spent};
use super::subject::Subject;
use pagewise_analyse::fault_paths::Source;
use pagewise_linux::process::Finished;
use pagewise_linux::tracefs::capture::Capture;
use pagewise_linux::tracefs::guard::{Difference, Recovered};
use pagewise_model::formats::function_graph::Counts;
use pagewise_model::run::{Ending, signal_name};
use pagewise_model::units::{Bytes, Nanos};
use std::path::PathBuf;

/// How the tracer was set up.
#[derive(Clone, Debug)]
pub struct Setting {
    buffer_kib: u64,
    available: usize,
    candidates: usize,
}

impl Setting {
    /// The setting of a capture.
    pub fn of(capture: &Capture) -> Self {
        Self {
            buffer_kib: capture.buffer_kib(),
            available: capture.functions().available,
            candidates: capture.functions().candidates.len(),
        }
    }
}

/// Everything that is told at the end.
#[derive(Debug)]
pub struct Report {
    pub cost: Cost,
    /// Our own CPU time, for reading and writing the trace.
    pub own_cpu: Nanos,
    pub spent: Spent,
    pub counts: Counts,
    pub capture: Setting,
    pub choice: Option<Choice>,
    pub rejected: Vec<String>,
    /// Events lost by CPU.
    pub lost: Vec<(u32, u64)>,
    pub differences: Vec<Difference>,
    pub path: PathBuf,
    pub size: u64,
}

/// The first message.
pub fn beginning(capture: &Capture, subject: &Subject) -> String {
    let functions = capture.functions();
    let mut text = format!(
        "tracing {}: {} inside {}, {}",
        subject.words(),
        plural(functions.candidates.len(), "function"),
        functions.roots.join(", "),
        match capture.is_in_instance() {
            true => "in an instance of its own",
            false => "with the kernel's one tracer (instances can't graph before Linux 6.12)",
        }
    );
    if let Some(root) = &functions.guessed_root {
        text += &format!("; no known entry of faults is traceable here, {root} looks like one");
    }
    text
}

/// What was put back after a kill.
pub fn recovered(recovered: &Recovered) -> String {
    let mut text = format!(
        "an earlier trace (process {}) was killed: put back {} and removed {}",
        recovered.owner,
        plural(recovered.files, "setting"),
        plural(recovered.instances, "instance"),
    );
    for difference in &recovered.differences {
        text += &format!("\n  not as before: {difference}");
    }
    text
}

/// Why functions are traced no more.
pub fn reason(choice: &Choice) -> String {
    format!(
        "{} that no fault met and {} that only cost time are left out",
        choice.unmet, choice.idle
    )
}

impl Report {
    /// The last messages, one a line.
    pub fn lines(&self, finished: Option<&Finished>) -> Vec<String> {
        let mut lines = vec![format!(
            "{} with {} in {} ({})",
            plural(self.cost.faults, "fault"),
            plural(self.counts.calls, "call"),
            self.path.display(),
            Bytes(self.size)
        )];
        if let Some(choice) = &self.choice {
            lines.push(format!(
                "after the first phase {} of {} were traced: {} (of {} that the kernel can trace)",
                choice.functions.len(),
                plural(self.capture.candidates, "function"),
                reason(choice),
                self.capture.available
            ));
        }
        lines.extend(self.cost_lines(finished));
        lines.extend(self.warnings());
        if let Some(Finished {
            ending: Ending::Killed(signal),
            ..
        }) = finished
        {
            lines.push(format!(
                "the program was killed by {}; what was recorded until then is kept",
                signal_name(*signal)
            ));
        }
        lines.push(format!(
            "see it with: pagewise report {}",
            self.path.display()
        ));
        lines
    }

    fn cost_lines(&self, finished: Option<&Finished>) -> Vec<String> {
        let cost = &self.cost;
        let calibration = &cost.calibration;
        let how = match calibration.source {
            Source::RootOnly => format!(
                "measured against {} with the roots alone",
                plural(cost.root_only_faults, "fault")
            ),
            Source::OwnTrace if cost.root_only_faults > 0 => format!(
                "estimated from the calls that do least: {} with the roots alone are too few or too \
                 different to measure it",
                plural(cost.root_only_faults, "fault")
            ),
            Source::OwnTrace | Source::Several => {
                "estimated from the calls that do least".to_owned()
            }
            Source::Nothing | Source::Withdrawn => {
                return vec![format!(
                    "what tracing cost can't be told from {}; reading and writing it took {} of \
                     CPU time",
                    plural(cost.faults, "fault"),
                    self.own_cpu
                )];
            }
        };
        let nanos = |ns: f64| Nanos::from_secs_f64(ns / 1e9);
        let mut text = format!(
            "tracing cost {} ± {} per call ({how}), {:.2} s in all",
            nanos(calibration.per_call_ns),
            nanos(calibration.error_ns),
            cost.added_s(),
        );
        if let Some(finished) = finished {
            let used = finished.cost.user.as_secs_f64() + finished.cost.system.as_secs_f64();
            text += &format!(" (the program and its children used {used:.2} s of CPU time)");
        }
        text += &format!(
            "; reading and writing the trace took {} besides",
            self.own_cpu
        );
        let mut lines = vec![text];
        if let Some((traced, plain)) = cost.rates {
            lines.push(format!(
                "a fault took {} with its path traced and {} without; {traced:.0} and {plain:.0} \
                 faults per second, in {:.1} s and {:.1} s",
                nanos(cost.traced_ns),
                nanos(cost.root_only_ns),
                self.spent.paths.as_secs_f64(),
                self.spent.root_only.as_secs_f64(),
            ));
        }
        lines
    }

    fn warnings(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.rejected.is_empty() {
            lines.push(format!(
                "the kernel refused {}: {}",
                plural(self.rejected.len(), "function"),
                self.rejected.join(", ")
            ));
        }
        for (cpu, events) in &self.lost {
            lines.push(format!(
                "CPU {cpu} lost {} for want of buffer ({} each CPU): try a larger --buffer",
                plural(*events, "event"),
                Bytes(self.capture.buffer_kib << 10)
            ));
        }
        for difference in &self.differences {
            lines.push(format!("tracefs is not as before: {difference}"));
        }
        lines
    }
}

/// `1 fault`, `2 faults`.
fn plural<T: Copy + PartialEq + From<u8> + std::fmt::Display>(count: T, what: &str) -> String {
    let ending = if count == T::from(1) { "" } else { "s" };
    format!("{count} {what}{ending}")
}
