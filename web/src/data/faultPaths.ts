/**
 * What the Rust side writes about a function_graph trace: `pagewise_model::fault_paths::FaultPaths`
 * as JSON (its schema is docs/schema/fault-paths.json) inside an envelope. Times are nanoseconds.
 * "raw" is as traced, "corrected" without the tracer's own cost.
 */

/** First value, first value past it, count. */
export type Bucket = [low: number, high: number, count: number];

export interface Mode {
  peak_ns: number;
  low_ns: number;
  high_ns: number;
  share: number;
}

export interface Latency {
  count: number;
  sum_ns: number;
  mean_ns: number;
  min_ns: number;
  p50_ns: number;
  p90_ns: number;
  p99_ns: number;
  max_ns: number;
  modes: Mode[];
  buckets: Bucket[];
}

/** Least and most of corrected figures, by the error of the tracer's cost. */
export interface Bounds {
  mean_ns: [number, number];
  p50_ns: [number, number];
  p90_ns: [number, number];
  p99_ns: [number, number];
}

export interface Latencies {
  raw: Latency;
  corrected: Latency;
  /** Null where nothing is corrected. */
  bounds: Bounds | null;
}

export interface TimeSplit {
  total_ns: number;
  self_ns: number;
  children_ns: number;
  interrupts_ns: number;
  runnable_ns: number;
  blocked_ns: number;
  off_cpu_ns: number;
}

export interface LayerFindings {
  layer: string;
  stood_for_by: string[];
  latency: Latencies;
}

export interface Contributor {
  function: string;
  calls: number;
  self_ns: number;
  corrected_self_ns: number;
  error_ns: number;
  time_share: number;
  corrected_time_share: number;
  variance_share: number;
}

export interface ClassFindings {
  class: string;
  faults: number;
  share: number;
  time_share: number;
  paths: number;
  latency: Latencies;
  split: TimeSplit;
  lock_before: Latency | null;
  layers: LayerFindings[];
  contributors: Contributor[];
}

export interface PathFindings {
  outline: string;
  class: string;
  faults: number;
  share: number;
  trees: number;
  mean_calls: number;
  latency: Latencies;
}

export interface CallNode {
  function: number;
  parent: number | null;
  class: string;
  layer: string | null;
  faults: number;
  calls: number;
  calls_inside: number;
  total_ns: number;
  corrected_total_ns: number;
  error_ns: number;
  self_ns: number;
  corrected_self_ns: number;
  total_by_latency: number;
  times: Bucket[];
  corrected_times: Bucket[];
}

export interface CallMap {
  functions: string[];
  nodes: CallNode[];
  timed_faults: number;
  nodes_left_out: number;
  self_ns_left_out: number;
}

export interface OtherCalls {
  function: string;
  latency: Latency;
}

export interface Calibration {
  per_call_ns: number;
  inside_ns: number;
  error_ns: number;
  source: "root_only" | "own_trace" | "several" | "nothing" | "withdrawn";
  withdrawn: { misfit: { clamped: number } | { unbalanced: number } | { uneven: number }; per_call_ns: number } | null;
}

export interface Contrast {
  class: string | null;
  quantile: number;
  threshold_ns: number;
  tail: number;
  body: number;
  tail_mean_ns: number;
  body_mean_ns: number;
  error_ns: [number, number];
  tests: number;
  functions: Overrepresented[];
  paths: Overrepresented[];
  excess: Excess[];
}

export interface Overrepresented {
  name: string;
  along: string[];
  class: string | null;
  tail: number;
  body: number;
  tail_share: number;
  body_share: number;
  p_adjusted: number;
}

export interface Excess {
  name: string;
  wait: boolean;
  ns: number;
  error_ns: number;
  share: number;
  tail_ns: number;
  body_ns: number;
}

export interface TimeBlock {
  start_ns: number | null;
  end_ns: number | null;
  faults: number;
  mean_ns: number;
  error_ns: number;
  p50_ns: number;
  p90_ns: number;
  p99_ns: number;
  /** Kind, faults, whole time as traced, calls inside. */
  classes: [string, number, number, number][];
}

export interface ChangePoint {
  what: "rate" | "mix" | "median" | "tail";
  class: string | null;
  at_ns: number | null;
  faults_before: number;
  before: number;
  after: number;
  p_adjusted: number;
}

export interface Timeline {
  blocks: TimeBlock[];
  changes: ChangePoint[];
  every: number;
}

export interface LockWait {
  lock: string;
  function: string;
  inside_fault: boolean;
  slow: number;
  latency: Latency;
  share: number;
}

export interface Holder {
  pid: number;
  task: string;
  how: "writing" | "reading" | "queued";
  doing: string | null;
  waits: number;
  wait_ns: number;
  longest_hold_ns: number;
}

export interface ChargePath {
  way: "stock_hit" | "refill" | "reclaim" | "untold";
  faults: number;
  share: number;
  latency: Latencies;
}

export interface TreePattern {
  outline: string;
  root: string;
  /** Of its faults, where it is one. */
  class: string | null;
  complete: boolean;
  faults: number;
  occurrences: number;
  calls: [number, number];
  time_share: number;
  corrected_time_share: number;
  total_ns: number;
  corrected_total_ns: number;
  self_ns: number;
  corrected_self_ns: number;
  raw_mean_ns: number;
  /** Corrected, as are the quantiles. */
  mean_ns: number;
  p50_ns: number;
  p99_ns: number;
  error_ns: number;
  timed: number;
  repeats: { function: string; counts: [number, number][] }[];
}

export interface FaultPaths {
  faults: number;
  duration_ns: number | null;
  calibration: Calibration;
  correction_exceeds_signal: boolean;
  latency: Latencies;
  elapsed: Latency;
  split: TimeSplit;
  conservation: { faults: number; violations: number; without_durations: number };
  missing: { count: number; what: string }[];
  classes: ClassFindings[];
  layers: LayerFindings[];
  paths: PathFindings[];
  distinct_paths: number;
  contributors: Contributor[];
  call_map: CallMap;
  calls_below_1us: number;
  other_calls: OtherCalls[];
  bare_ends: OtherCalls[];
  contrasts: Contrast[];
  timeline: Timeline;
  lock_waits: { locks: LockWait[]; holders: Holder[]; attributed: [number, number]; attributed_ns: [number, number] };
  charges: ChargePath[];
  trees: TreePattern[];
  trees_left_out: number;
  reading: { sleep_time: "assumed" | "included" | "excluded"; depth_limit: number | null; interrupts_by_place: number; trees_beyond_limit: number };
}

/** Names for people. */
export interface Labels {
  classes: Record<string, string>;
  layers: Record<string, string>;
}

/** A page about the faults of one trace. */
export interface FaultPathsPage {
  kind: "fault_paths";
  generator: string;
  name: string;
  findings: FaultPaths;
  labels: Labels;
}
