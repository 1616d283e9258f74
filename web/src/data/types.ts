/**
 * What the Rust side writes: `pagewise_model::findings::Run` as JSON (schema in
 * docs/schema/schema.json), and the texts that are worded only in Rust. Times are in nanoseconds,
 * sizes in bytes. A figure that is not a number arrives as null.
 */
import type { Estimate, Run } from "./schema";
export type { Estimate, RunCost, Ending, Severity, Diagnosis, Advice, Arm, Comparison, Proof, Site, FlameNode, FaultMap, Histogram, TimelinePoint, PressurePoint, Allocator, TimePart, Run } from "./schema";

export interface Share {
  key: string;
  faults: Estimate;
  time: number | null;
}

/** The part of a page about the faults of a recording. */
export interface Report {
  /** The command as one would type it. */
  command_line: string;
  findings: Run;
  /** For each advice, labelled texts to copy. */
  exports: [string, string][][];
  /** Display names of every cause and region that occurs. */
  labels: { causes: Record<string, string>; regions: Record<string, string> };
  /** Causes that mean: given back and touched again. */
  churn_causes: string[];
  /** Frames of the flame graph that were too small to keep. */
  frames_left_out: number;
}
