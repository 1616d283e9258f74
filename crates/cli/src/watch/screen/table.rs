//! Figures of each process: which one faults.

use super::ProcessList;
use pagewise_linux::proc::ProcessReading;
use pagewise_model::units::Nanos;
use std::collections::HashMap;

/// Rates are taken over at least this time: CPU time comes in steps of 10 ms.
const STRETCH: Nanos = Nanos(1_000_000_000);

/// Processes with their rates over about a second.
#[derive(Default)]
pub struct Processes {
    base: HashMap<i32, ProcessReading>,
    base_time: Nanos,
    lines: Vec<Line>,
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The process.
    pub process: ProcessReading,
    /// Minor and major faults per second.
    pub faults_per_s: f64,
    /// Share of one CPU in percent.
    pub cpu_percent: f64,
    /// The kernel's part of that.
    pub system_percent: f64,
}

impl Processes {
    /// Takes a reading; lines change once per second.
    pub fn take(&mut self, time: Nanos, processes: &ProcessList) {
        let elapsed = time - self.base_time;
        if elapsed >= STRETCH || self.lines.is_empty() {
            let seconds = elapsed.as_secs_f64().max(1e-3);
            self.lines = processes.iter().map(|p| self.line(p, seconds)).collect();
            self.lines
                .sort_by(|a, b| b.faults_per_s.total_cmp(&a.faults_per_s));
            self.base = processes.iter().map(|p| (p.pid, p.clone())).collect();
            self.base_time = time;
        }
    }

    /// Lines, the process that faults most first.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    fn line(&self, process: &ProcessReading, seconds: f64) -> Line {
        let base = self.base.get(&process.pid);
        let grown = |of: fn(&ProcessReading) -> u64| {
            let before = base.map_or(0, of);
            super::as_f64(of(process).saturating_sub(before)) / seconds
        };
        let system_percent = grown(|p| p.system.0) / 1e7;
        Line {
            process: process.clone(),
            faults_per_s: grown(|p| p.minor_faults + p.major_faults),
            cpu_percent: grown(|p| p.user.0) / 1e7 + system_percent,
            system_percent,
        }
    }
}
