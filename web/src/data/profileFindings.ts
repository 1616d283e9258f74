/** `pagewise_model::profile_findings` and `profile_diff` as JSON (docs/schema/profile.json, profile-diff.json). */
import type { FrameKind, Unit } from "./profile";
import type { Diagnosis, Estimate, Host } from "./types";

export interface ProfileFindings {
  command: string[];
  host: Host;
  span: number;
  headline: string;
  diagnoses: Diagnosis[];
  events: EventProfile[];
  counters: { name: string; total: number | null; rate: number; counted: number }[];
  unknown: { reason: string; module: string; touched: number; own: number; remedy: string }[];
  own_cost: number | null;
  notes: string[];
}

export interface EventProfile {
  name: string;
  unit: Unit;
  frequency: number | null;
  samples: number;
  weight: number;
  idle: number;
  processes: { pid: number; comm: string; threads: number; weight: number }[];
  cpus: { cpu: number; weight: number }[];
}

export interface ProfileDiff {
  a: DiffSide;
  b: DiffSide;
  event: string;
  measure: Measure;
  slowdown: number | null;
  block: number;
  blocks: [number, number];
  headline: string;
  run?: RunDiff;
  functions: Change[];
  stacks: StackChange[];
  detectable: number;
  unknown: { reason: string; module: string; a: number; b: number; remedy: string }[];
  settings: { name: string; a: string | null; b: string | null; touches: string[]; reason: string }[];
  counters: { name: string; a: number; b: number }[];
  notes: string[];
}

/** Two whole runs of a command. */
export interface RunDiff {
  headline: string;
  figures: FigureChange[];
  causes: { cause: string; label: string; a: Estimate; b: Estimate; differs: boolean }[];
}

export interface FigureChange {
  quantity: "cpu_time" | "elapsed_time" | "faults" | "major_faults" | "peak_memory";
  a: number;
  b: number;
  differs: boolean;
}

export type Measure = "share_of_busy" | "cpus_in_use" | "per_second" | "cpu_seconds_per_run" | "events_per_run";

export interface DiffSide {
  name: string;
  host: string;
  samples: number;
  weight: number;
  unit: Unit | null;
  span: number;
  cpus: number;
}

export interface Change {
  name: string;
  module: string;
  kind: FrameKind;
  a: number;
  b: number;
  own: [number, number];
  change: Estimate;
  p_adjusted: number;
  significant: boolean;
}

export interface StackChange {
  frames: string[];
  a: number;
  b: number;
  change: Estimate;
  p_adjusted: number;
  significant: boolean;
}
