//! The tracer's own cost, and latencies without it.
//!
//! function_graph makes every traced call slower: a part of its cost is inside the call, between
//! the times that the tracer takes at its begin and end, the rest in its caller. A fault with 46
//! calls inside takes ten times its real time, and since paths differ in their number of calls,
//! comparisons of raw latencies can be reversed. The cost of tracing the root itself is not
//! subtracted, as in a root-only trace:
//!
//! ```text
//! corrected = raw − cost × calls inside
//! ```
//!
//! The cost is found in the trace itself (`floor`) or by comparison with root-only faults
//! (`root_only`); either is withdrawn if it does not fit (`fit`).

mod costs;
mod fit;
mod floor;
mod root_only;
mod signs;

pub(super) use costs::{Costs, place, pooled, together};
pub use fit::estimate;
pub use pagewise_model::fault_paths::{Calibration, Misfit, Source, Withdrawal};
pub use root_only::{Refusal, calibrate, calibrate_by_histogram, calibrate_by_notes};
pub(super) use signs::ProbeSigns;
