//! `pagewise gate`: whether a program takes more page faults, memory or time than before, from runs
//! of both versions, and why.

use crate::answer::{Evidence, Kind};
use crate::findings::{Cause, Share, Site};
use crate::host::HostSnapshot;
use crate::quantity::rounded;
use crate::run::RunCost;
use crate::run_diff::CauseChange;
use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// What is compared with an allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Minor and major page faults.
    Faults,
    /// Page faults that needed I/O.
    MajorFaults,
    /// Largest resident memory of the process tree, bytes.
    PeakMemory,
    /// CPU time in the kernel, ns: page faults, memory calls and all other system calls.
    SystemTime,
    /// CPU time in user mode and in the kernel, ns.
    CpuTime,
    /// Elapsed time, ns.
    ElapsedTime,
}

impl Metric {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 6] = [
        Self::Faults,
        Self::MajorFaults,
        Self::PeakMemory,
        Self::SystemTime,
        Self::CpuTime,
        Self::ElapsedTime,
    ];

    /// Display name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Faults => "page faults",
            Self::MajorFaults => "page faults that needed I/O",
            Self::PeakMemory => "peak memory",
            Self::SystemTime => "CPU time in the kernel",
            Self::CpuTime => "CPU time",
            Self::ElapsedTime => "elapsed time",
        }
    }

    /// Name on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Faults => "faults",
            Self::MajorFaults => "major",
            Self::PeakMemory => "peak",
            Self::SystemTime => "system",
            Self::CpuTime => "cpu",
            Self::ElapsedTime => "elapsed",
        }
    }

    /// A value with its unit, for display.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sizes, not negative"
    )]
    pub fn amount(self, value: f64) -> String {
        match self {
            Self::Faults | Self::MajorFaults => rounded(value),
            Self::PeakMemory => Bytes(value.round() as u64).to_string(),
            Self::SystemTime | Self::CpuTime | Self::ElapsedTime => {
                Nanos::from_secs_f64(value / 1e9).to_string()
            }
        }
    }

    /// Whether it is a time, which depends on the machine's speed and on other work on it.
    #[must_use]
    pub fn is_time(self) -> bool {
        matches!(self, Self::SystemTime | Self::CpuTime | Self::ElapsedTime)
    }
}

/// One run; for a command that ends within milliseconds, the mean of a few.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateRun {
    /// The resources reported by `wait4(2)`.
    pub cost: RunCost,
    /// Largest resident memory of the tree: `ru_maxrss`, or the sum over several processes if that
    /// was seen to be more. `None` where the program stayed below the peak that it inherited from
    /// us at its start, since `ru_maxrss` is never less than that.
    pub peak: Option<Bytes>,
}

impl GateRun {
    /// Its figure, in the metric's unit; for an unknown peak, its upper bound.
    #[must_use]
    pub fn figure(&self, metric: Metric) -> f64 {
        let cost = &self.cost;
        match metric {
            Metric::Faults => cost.faults() as f64,
            Metric::MajorFaults => cost.major_faults as f64,
            Metric::PeakMemory => self.peak.unwrap_or(cost.max_rss).0 as f64,
            Metric::SystemTime => cost.system.0 as f64,
            Metric::CpuTime => cost.cpu().0 as f64,
            Metric::ElapsedTime => cost.wall.0 as f64,
        }
    }
}

/// The facts that decide which figures of two machines can be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateHost {
    /// Host name.
    pub hostname: String,
    /// Kernel release.
    pub kernel: String,
    /// Architecture.
    pub architecture: String,
    /// Processor.
    pub cpu: String,
    /// CPUs online.
    pub cpus: u32,
    /// Page size, bytes.
    pub page_size: u64,
    /// `/sys/kernel/mm/transparent_hugepage/enabled`.
    pub huge_pages: Option<String>,
    /// Version of the C library.
    pub c_library: Option<String>,
}

impl From<&HostSnapshot> for GateHost {
    fn from(host: &HostSnapshot) -> Self {
        let setting = |name: &str| host.settings.get(name).cloned();
        Self {
            hostname: host.hostname.clone(),
            kernel: host.kernel.clone(),
            architecture: host.architecture.clone(),
            cpu: host.cpu.clone(),
            cpus: host.cpus,
            page_size: host.page_size,
            huge_pages: setting("thp.enabled"),
            c_library: setting("libc.glibc"),
        }
    }
}

/// The faults of one observed run, to find out later which of them are new.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultsSeen {
    /// By cause.
    pub by_cause: Vec<Share<Cause>>,
    /// Heaviest stacks.
    pub sites: Vec<Site>,
}

/// What `pagewise gate --save` writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Baseline {
    /// The machine.
    pub host: GateHost,
    /// Unix time in milliseconds.
    pub made_unix_ms: u64,
    /// How much the CPUs were shared meanwhile (0 to 1).
    pub contended: Option<f64>,
    /// Number of runs per measurement.
    pub batch: u32,
    /// Each measurement.
    pub runs: Vec<GateRun>,
    /// Where the program faults; `None` where that could not be recorded.
    pub faults: Option<FaultsSeen>,
}

impl Evidence for Baseline {
    const KIND: Kind = Kind::GateBaseline;
}

/// The outcome for one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    /// Certainly beyond its allowance: the gate fails.
    Grown,
    /// Not beyond its allowance, by the medians.
    Within,
    /// Beyond its allowance by the medians, but chance could explain that.
    Unsure,
    /// Not comparable, unknown or not requested.
    NotJudged,
}

/// One figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judged {
    /// The metric.
    pub metric: Metric,
    /// Median of the old side, in the metric's unit.
    pub old: Option<f64>,
    /// Median of the new side.
    pub new: Option<f64>,
    /// Growth of the median as a fraction of the old one; `None` where that is zero or unknown.
    pub growth: Option<f64>,
    /// Growth that is certain at [`Gate::level`]: more than this; `None` with too few runs.
    pub surely_more_than: Option<f64>,
    /// Growth that is allowed; `None` where any is.
    pub allowed: Option<f64>,
    /// The outcome.
    pub verdict: GateVerdict,
    /// Why it is not judged, otherwise empty.
    pub reason: String,
}

impl Judged {
    /// Growth that is allowed, for display: `2 %`, `any`.
    #[must_use]
    pub fn allowance(&self) -> String {
        match self.allowed {
            Some(share) => {
                let percent = format!("{:.2}", 100.0 * share);
                let percent = percent.trim_end_matches('0').trim_end_matches('.');
                format!("{percent} %")
            }
            None => "any".to_owned(),
        }
    }
}

/// One side of the gate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateSide {
    /// The command.
    pub command: Vec<String>,
    /// The file that its runs were read from, if any.
    pub baseline: Option<String>,
    /// Its runs, in the order in which they ran.
    pub runs: Vec<GateRun>,
}

/// A stack whose faults grew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackGrowth {
    /// Functions, outermost first.
    pub stack: Vec<String>,
    /// The function that a reader should look at.
    pub culprit: String,
    /// Cause that grew most, or that of most of its faults.
    pub cause: Cause,
    /// Display name of that cause.
    pub label: String,
    /// Faults in the old run, at most; scaled from samples. If the old program had no such stack,
    /// old and new are the faults of the culprit in any stack.
    pub old: f64,
    /// Faults in the new run.
    pub new: f64,
}

/// A function that takes more CPU time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FunctionGrowth {
    /// Its name.
    pub name: String,
    /// The file that contains it.
    pub module: String,
    /// Seconds in the old run, callees included.
    pub old_s: f64,
    /// Seconds in the new run.
    pub new_s: f64,
}

/// The causes of the growth, from one more run of each side under observation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Culprit {
    /// Causes of faults that grew, the one that grew most first.
    pub causes: Vec<CauseChange>,
    /// Stacks that grew, the one that grew most first.
    pub stacks: Vec<StackGrowth>,
    /// Functions that take more CPU time, where time grew.
    pub functions: Vec<FunctionGrowth>,
    /// Why the analysis cannot go further, and what would help.
    pub missing: Vec<String>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gate {
    /// Whether no figure is certainly beyond its allowance.
    pub passed: bool,
    /// Before.
    pub old: GateSide,
    /// After.
    pub new: GateSide,
    /// Largest number of runs of each side.
    pub most_pairs: u32,
    /// Number of runs per measurement.
    pub batch: u32,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Allowed chance of a false alarm per figure: 5 % over all that are judged.
    pub level: f64,
    /// Each figure.
    pub figures: Vec<Judged>,
    /// The causes of the growth.
    pub culprit: Option<Culprit>,
}

impl Evidence for Gate {
    const KIND: Kind = Kind::Gate;
}

impl Gate {
    /// Figures certainly beyond their allowance.
    pub fn grown(&self) -> impl Iterator<Item = &Judged> {
        let is_grown = |figure: &&Judged| figure.verdict == GateVerdict::Grown;
        self.figures.iter().filter(is_grown)
    }
}
