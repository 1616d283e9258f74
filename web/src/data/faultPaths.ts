/**
 * What the Rust side writes about a function_graph trace:
 * `pagewise_model::fault_paths::TracedFaults` as JSON (schema in docs/schema/schema.json) with
 * names for people. Times are in nanoseconds. "raw" is as traced, "corrected" is without the
 * tracer's own cost.
 */
import type { Latencies, TracedFaults } from "./schema";
export type { Mode, Latency, Bounds, Latencies, TimeSplit, LayerFindings, Contributor, ClassFindings, CallNode, CallMap, OtherCalls, Calibration, Contrast, Overrepresented, Excess, TimeBlock, ChangePoint, TraceTimeline as Timeline, LockWait, Holder, ChargePath, TreePattern, TracedFaults } from "./schema";

/** First value, first value past it, count. */
export type Bucket = [low: number, high: number, count: number];

export interface PathFindings {
  outline: string;
  class: string;
  faults: number;
  share: number;
  trees: number;
  mean_calls: number;
  latency: Latencies;
}

/** Display names. */
export interface Labels {
  classes: Record<string, string>;
  layers: Record<string, string>;
}

/** The part of a page about the faults of one trace. */
export interface FaultPathsPage {
  findings: TracedFaults;
  labels: Labels;
}
