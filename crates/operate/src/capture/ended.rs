//! A capture that has ended, as data.

use super::choice::Choice;
use super::cost::Cost;
use pagewise_linux::process::Finished;
use pagewise_linux::tracefs::capture::Capture;
use pagewise_linux::tracefs::guard::Difference;
use pagewise_model::capture_summary::{
    CallCost, CaptureSummary, ChosenFunctions, FaultPace, TracingCost,
};
use pagewise_model::units::{Bytes, Nanos};
use pagewise_traces::fault_paths::Source;
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
    pub fn new(capture: &Capture) -> Self {
        Self {
            buffer_kib: capture.buffer_kib(),
            available: capture.functions().available,
            candidates: capture.functions().candidates.len(),
        }
    }
}

/// Everything known at the end.
#[derive(Debug)]
pub struct Ended {
    pub cost: Cost,
    /// Our own CPU time, for reading and writing the trace.
    pub own_cpu: Nanos,
    pub setting: Setting,
    pub choice: Option<Choice>,
    pub rejected: Vec<String>,
    /// Events lost by CPU.
    pub lost: Vec<(u32, u64)>,
    pub differences: Vec<Difference>,
    pub path: PathBuf,
    pub size: u64,
}

impl Ended {
    /// With the program's end.
    pub fn summary(self, finished: Option<&Finished>) -> CaptureSummary {
        let cpu = |one: &Finished| one.cost.user.as_secs_f64() + one.cost.system.as_secs_f64();
        let differences = self.differences.iter().map(ToString::to_string);
        CaptureSummary {
            size: Bytes(self.size),
            faults: self.cost.faults,
            calls: self.cost.calls,
            choice: self.choice.as_ref().map(|choice| ChosenFunctions {
                traced: choice.functions.len(),
                reason: choice.reason(),
            }),
            candidates: self.setting.candidates,
            available: self.setting.available,
            cost: tracing_cost(&self.cost),
            own_cpu: self.own_cpu,
            program_cpu_s: finished.map(cpu),
            buffer: Bytes(self.setting.buffer_kib << 10),
            differences: differences.collect(),
            ending: finished.map(|one| one.ending),
            rejected: self.rejected,
            lost: self.lost,
            path: self.path,
        }
    }
}

fn tracing_cost(cost: &Cost) -> TracingCost {
    let is_known = !matches!(cost.calibration.source, Source::Nothing | Source::Withdrawn);
    TracingCost {
        of_call: is_known.then(|| CallCost {
            ns: cost.calibration.per_call_ns,
            error_ns: cost.calibration.error_ns,
            total_s: cost.added_s(),
            is_measured: cost.calibration.source == Source::RootOnly,
        }),
        root_only_faults: cost.root_only_faults,
        beside: cost.rates.map(|(traced, plain)| {
            let pace = |mean_ns, per_s, during: std::time::Duration| FaultPace {
                mean_ns,
                per_s,
                during_s: during.as_secs_f64(),
            };
            [
                pace(cost.traced_ns, traced, cost.spent.paths),
                pace(cost.root_only_ns, plain, cost.spent.root_only),
            ]
        }),
    }
}
