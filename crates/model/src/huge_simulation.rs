//! What simulated huge pages showed: as JSON (`docs/schema/huge-simulate.json`) and for the report.

use crate::huge_map::HugeMap;
use serde::Serialize;

/// Version of the JSON.
pub const SCHEMA_VERSION: u32 = 1;

/// The result of `pagewise huge simulate`.
#[derive(Clone, Debug, Serialize)]
pub struct HugeSimulation {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The machine's name.
    pub machine: String,
    /// The programs, in order.
    pub workloads: Vec<String>,
    /// What a trace held that was not used, in words.
    pub notes: Vec<String>,
    /// Page sizes compared, without a controller.
    pub configurations: Vec<Configuration>,
    /// Runs with controllers, a run for each program.
    pub controlled: Vec<Controlled>,
    /// Cost by number of huge pages, where asked for.
    pub sweep: Vec<SweepPoint>,
    /// Misses of fully associative LRU TLBs of all sizes.
    pub reuse: Vec<ReuseCurve>,
    /// Reach of each machine's TLBs, for the curves.
    pub reaches: Vec<Reach>,
    /// The paper's experiment, where asked for.
    pub paper: Option<Paper>,
}

/// A program under fixed page sizes.
#[derive(Clone, Debug, Serialize)]
pub struct Configuration {
    /// Page sizes in words.
    pub name: String,
    /// The program.
    pub workload: String,
    /// Nanoseconds an access, all included.
    pub ns_per_access: f64,
    /// Speed relative to the first configuration of the program.
    pub speed: f64,
    /// Refills of small pages in 1000 accesses.
    pub small_per_1000: f64,
    /// Refills of huge pages in 1000 accesses.
    pub huge_per_1000: f64,
    /// Share of time in refills.
    pub refill_share: f64,
}

/// A program with a controller.
#[derive(Clone, Debug, Serialize)]
pub struct Controlled {
    /// The program.
    pub workload: String,
    /// The controller.
    pub controller: String,
    /// Speed at the end relative to the same page sizes without a controller.
    pub gain: f64,
    /// The same over the whole run.
    pub gain_whole: f64,
    /// Speed at the end relative to running alone, where several programs share the TLB.
    pub against_alone: Option<f64>,
    /// Nanoseconds an access at the end.
    pub ns_per_access: f64,
    /// Huge pages at the end.
    pub huge: u64,
    /// As many as its memory could hold.
    pub possible: u64,
    /// Huge pages split.
    pub split: u64,
    /// Huge pages built.
    pub built: u64,
    /// What the controller decided last, in words.
    pub reason: Option<String>,
    /// Over time.
    pub timeline: Vec<Moment>,
    /// Which memory was huge, over time.
    pub map: HugeMap,
}

/// A point of a timeline: means since the last.
#[derive(Clone, Debug, Serialize)]
pub struct Moment {
    /// Simulated seconds.
    pub at_s: f64,
    /// Refills of huge pages a second.
    pub huge_per_s: f64,
    /// Refills of small pages a second.
    pub small_per_s: f64,
    /// Huge pages (N_h).
    pub huge: u64,
    /// Loaded intervals in a row, less quiet ones (C_L).
    pub load: u32,
    /// Imbalance when last computed (y).
    pub imbalance: Option<f64>,
    /// Nanoseconds an access.
    pub ns_per_access: f64,
}

/// Cost at a fixed number of huge pages.
#[derive(Clone, Debug, Serialize)]
pub struct SweepPoint {
    /// Huge pages.
    pub huge: u64,
    /// Nanoseconds an access.
    pub ns_per_access: f64,
    /// Refills of small pages in 1000 accesses.
    pub small_per_1000: f64,
    /// Refills of huge pages in 1000 accesses.
    pub huge_per_1000: f64,
}

/// Miss ratio by number of entries, at one page size.
#[derive(Clone, Debug, Serialize)]
pub struct ReuseCurve {
    /// The program.
    pub workload: String,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Share of pages that were sampled.
    pub sampled: f64,
    /// Entries and the share of accesses that miss as many.
    pub points: Vec<(u64, f64)>,
    /// Greatest error that sampling is expected to make (95 %), in miss ratio.
    pub error: f64,
}

/// How much a machine's last TLB level maps.
#[derive(Clone, Debug, Serialize)]
pub struct Reach {
    /// The machine.
    pub machine: String,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Entries for pages of that size.
    pub entries: u64,
}

/// The paper's experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Paper {
    /// Whether all numbers, orderings and workloads hold.
    pub holds: bool,
    /// Every configuration of mcf.
    pub cases: Vec<PaperCase>,
    /// Numbers of the paper beside simulated ones.
    pub targets: Vec<PaperTarget>,
    /// Relations that the paper's figures show.
    pub orderings: Vec<PaperOrdering>,
    /// Other workloads with controllers.
    pub suite: Vec<PaperWorkload>,
    /// Other assumptions about the machine, where asked for.
    pub sensitivity: Vec<PaperVariant>,
    /// The fit, where asked for.
    pub fit: Option<PaperFit>,
}

/// A configuration of mcf.
#[derive(Clone, Debug, Serialize)]
pub struct PaperCase {
    /// Stable name.
    pub name: String,
    /// For people.
    pub label: String,
    /// Nanoseconds an access.
    pub ns_per_access: f64,
    /// Speed relative to the host's small pages.
    pub score: f64,
    /// Refills of huge pages a second.
    pub huge_per_s: f64,
    /// Refills of small pages a second.
    pub small_per_s: f64,
    /// Huge pages at the end, at the stage that a controller acts on.
    pub huge: u64,
}

/// A number of the paper.
#[derive(Clone, Debug, Serialize)]
pub struct PaperTarget {
    /// What it is.
    pub name: String,
    /// `change` (a share) or `per_second`.
    pub unit: String,
    /// In the paper.
    pub paper: f64,
    /// Simulated.
    pub simulated: f64,
    /// Allowed difference.
    pub tolerance: f64,
    /// Whether it is near enough.
    pub holds: bool,
}

/// A relation.
#[derive(Clone, Debug, Serialize)]
pub struct PaperOrdering {
    /// Where, and what.
    pub name: String,
    /// Whether it holds.
    pub holds: bool,
}

/// A workload of the suite; all numbers are changes of speed, as shares.
#[derive(Clone, Debug, Serialize)]
pub struct PaperWorkload {
    /// Its name.
    pub name: String,
    /// Huge pages against small ones on the host.
    pub host: f64,
    /// At both levels against none in a guest.
    pub both: f64,
    /// The paper's controller against both, at the end.
    pub paper: f64,
    /// The same over the whole run.
    pub paper_whole: f64,
    /// Min-cost against both, at the end.
    pub min_cost: f64,
    /// The same over the whole run.
    pub min_cost_whole: f64,
    /// Huge pages left by the paper's controller, by min-cost, and all.
    pub huge: [u64; 3],
}

/// The experiment under another assumption.
#[derive(Clone, Debug, Serialize)]
pub struct PaperVariant {
    /// The assumption.
    pub name: String,
    /// Simulated numbers in the order of [`Paper::targets`], and whether each holds.
    pub targets: Vec<(f64, bool)>,
    /// Orderings that fail.
    pub failing: Vec<String>,
    /// Huge pages left by the paper's controller.
    pub left: u64,
}

/// A fit of what the paper leaves open.
#[derive(Clone, Debug, Serialize)]
pub struct PaperFit {
    /// Parameters.
    pub parameters: Vec<PaperParameter>,
    /// Numbers of the paper with the fitted parameters.
    pub targets: Vec<PaperTarget>,
}

/// A parameter.
#[derive(Clone, Debug, Serialize)]
pub struct PaperParameter {
    /// What it is.
    pub name: String,
    /// Whether it was fitted, or held and only asked about.
    pub is_fitted: bool,
    /// Whether the numbers determine it.
    pub is_identified: bool,
    /// Before the fit.
    pub before: f64,
    /// After.
    pub after: f64,
    /// Share of its effect that no change of the fitted parameters imitates.
    pub own_share: f64,
    /// Relative change of it alone that moves a number by its tolerance.
    pub slack: f64,
}
