/** `pagewise_model::fault_diff::FaultDiff` as JSON: two traces side by side. Times are nanoseconds. */
import type { Calibration, Labels, Latency } from "./faultPaths";
import type { Estimate } from "./types";

export interface Side {
  name: string;
  faults: number;
  duration_ns: number | null;
  calibration: Calibration;
  correction_exceeds_signal: boolean;
  distinct_paths: number;
  blocks: number;
  block_correlation: number;
  missing: { count: number; what: string }[];
}

export interface Pair {
  a: number;
  b: number;
}

export interface Pairs {
  raw: Pair;
  corrected: Pair;
}

export interface Test {
  score: number;
  p_adjusted: number;
  significant: boolean;
}

export interface Finding {
  subject: string;
  class: string | null;
  layer: string | null;
  name: string | null;
  sentence: string;
  unit: "ns" | "share" | "per_fault" | "per_second" | "ratio";
  figures: Pairs;
  change: Estimate;
  mean_ns: number;
  test: Test;
  correction_exceeds_signal: boolean;
}

export interface QuantileShift {
  quantile: number;
  ns: Pairs;
  change: Estimate;
  test: Test | null;
}

export interface Shift {
  a: Latency;
  b: Latency;
  a_raw: Latency;
  b_raw: Latency;
  mean: Estimate;
  mean_test: Test | null;
  quantiles: QuantileShift[];
}

export interface ClassChange {
  class: string;
  faults: [number, number];
  share: Pair;
  time_share: Pairs;
  change: Estimate;
  test: Test | null;
  whole: Shift;
}

export interface LayerChange {
  layer: string;
  class: string | null;
  time_share: Pairs;
  shift: Shift;
}

export interface PathChange {
  class: string;
  outline: string;
  faults: [number, number];
  share: Pair;
  change: Estimate;
  test: Test | null;
  mean_ns: Pairs;
}

export interface FunctionChange {
  function: string;
  class: string;
  calls: Pair;
  own_ns: Pairs;
  change: Estimate;
  time_test: Test | null;
  calls_test: Test | null;
  slow: { above_ns: number; per_fault: Pair; usual_ns: Pair; slow_ns: Pair; test: Test } | null;
}

export interface ExtraFunction {
  function: string;
  in_b: boolean;
  calls: number;
  faults: number;
  share: number;
  time_share: number;
}

export interface Part {
  cause: "mix" | "function" | "runnable" | "blocked" | "off_cpu" | "lock_before" | "rest";
  class: string | null;
  function: string | null;
  ns: number;
  raw_ns: number;
}

export interface Explanation {
  figures: Pairs;
  change_ns: number;
  parts: Part[];
  sentences: string[];
}

export interface FaultDiff {
  a: Side;
  b: Side;
  method: { level: number; tests: number; questions: number; permutations: number; resamples: number; seed: number; not_tested: string | null };
  headline: string;
  findings: Finding[];
  /** Large differences that could be chance, or the tracer's cost. */
  phases?: Finding[];
  suspicions?: Finding[];
  whole: Shift;
  classes: ClassChange[];
  layers: LayerChange[];
  paths: PathChange[];
  functions: FunctionChange[];
  extra: ExtraFunction[];
  mean: Explanation;
  tail: Explanation;
}

/** A page about two traces. */
export interface FaultDiffPage {
  kind: "fault_diff";
  generator: string;
  diff: FaultDiff;
  labels: Labels;
}
