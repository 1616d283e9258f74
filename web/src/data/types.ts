/**
 * What the Rust side writes: `pagewise_model::findings::Findings` as JSON (its schema is
 * docs/schema/schema.json) with the texts that only Rust should word.
 * Times are nanoseconds, sizes bytes. A figure that is no number arrives as null.
 */
import type { Estimate, Findings } from "./schema";
export type { Estimate, RunCost, Ending, Severity, Diagnosis, Advice, Arm, Comparison, Proof, Site, FlameNode, FaultMap, Histogram, TimelinePoint, PressurePoint, Allocator, TimePart, Findings } from "./schema";

export interface Share {
  key: string;
  faults: Estimate;
  time: number | null;
}

/** The part of a page about the faults of a recording. */
export interface Report {
  /** The command as one would type it. */
  command_line: string;
  findings: Findings;
  /** For each advice, labelled texts to copy. */
  exports: [string, string][][];
  /** Names for people, of every cause, region and loss that occurs. */
  labels: { causes: Record<string, string>; regions: Record<string, string> };
  /** Causes that mean: given back, wanted again. */
  churn_causes: string[];
  losses: { text: string; count: number }[];
  /** Frames of the flame graph that were too small to keep. */
  frames_left_out: number;
}

/** The machine that recorded; empty strings and zeros where nothing is known of it. */
export interface Host {
  hostname: string;
  kernel: string;
  architecture: string;
  cpu: string;
  cpus: number;
  memory_bytes: number;
  page_size: number;
  settings: Record<string, string>;
}
