/**
 * What the Rust side writes: `pagewise_model::findings::Findings` as JSON (its schema is
 * docs/schema/findings.json) inside an envelope with the texts that only Rust should word.
 * Times are nanoseconds, sizes bytes. A figure that is no number arrives as null.
 */
import type { ProfileData } from "./profile";

export interface Estimate {
  value: number;
  low: number;
  high: number;
}

export interface RunCost {
  wall: number;
  user: number;
  system: number;
  minor_faults: number;
  major_faults: number;
  max_rss: number;
  voluntary_switches: number;
  involuntary_switches: number;
}

export type Ending = { exited: number } | { killed: number } | "running";
export type Severity = "healthy" | "note" | "costly" | "severe";

export interface Diagnosis {
  id: string;
  severity: Severity;
  headline: string;
  explanation: string;
  evidence: string[];
  share_of_cpu: Estimate | null;
}

export interface Advice {
  rule: string;
  headline: string;
  reason: string;
  manual: string | null;
  predicted_speedup: Estimate;
  faults_avoided: number;
  rss_price: number;
  risk: "low" | "medium" | "high";
  caveat: string | null;
}

export interface Arm {
  name: string;
  runs: RunCost[];
}

export interface Comparison {
  arm: string;
  wall_speedup: Estimate;
  cpu_speedup: Estimate;
  fault_ratio: Estimate;
  system_ratio: Estimate;
  rss_change_bytes: number;
  p_adjusted: number;
  pairs: number;
  verdict: "faster" | "no_difference" | "slower" | "too_much_memory" | "undecided" | "not_reached";
}

export interface Proof {
  arms: Arm[];
  comparisons: Comparison[];
  winner: string | null;
  confirmation: Comparison | null;
  summary: string;
  notes: string[];
}

export interface Share {
  key: string;
  faults: Estimate;
  time: number | null;
}

export interface Site {
  stack: string[];
  culprit: string;
  faults: number;
  main_cause: string;
}

export interface FlameNode {
  name: string;
  module: string;
  total: number;
  children: FlameNode[];
}

export interface FaultMap {
  time_step: number;
  columns: number;
  rows: { start: string; length: number; region: string }[];
  cells: { row: number; column: number; faults: number; churn: number }[];
}

/** `pagewise_model::histogram::Histogram`; see histogram.ts for what a bucket spans. */
export interface Histogram {
  buckets: Record<string, number>;
  count: number;
  sum: number;
  min: number;
  max: number;
}

export interface TimelinePoint {
  time: number;
  vsize: number;
  rss: number;
  pss: number | null;
  swap: number;
  minor_faults: number;
  major_faults: number;
  user: number;
  system: number;
  processes: number;
  threads: number;
}

/** Readings of the machine's and the cgroup's memory pressure; counters are cumulative. */
export interface PressurePoint {
  time: number;
  stall_some: number | null;
  stall_full: number | null;
  swap_in: number;
  swap_out: number;
  direct_scanned: number;
  kswapd_scanned: number;
  thp_fault_alloc: number;
  thp_fault_fallback: number;
  refaults_file: number;
  refaults_anon: number;
  cgroup_usage: number | null;
}

export interface Allocator {
  kind: string;
  version: string | null;
  evidence: string;
  settings: Record<string, string>;
  is_static: boolean;
}

export interface TimePart {
  id: string;
  label: string;
  time: Estimate;
  /** Functions that most of it was spent in, or waited in. */
  places: string[];
  /** Processes that waited. */
  who?: string[];
}

export interface Findings {
  schema_version: number;
  command: string[];
  pid: number;
  started_unix_ms: number;
  host: Host;
  cost: RunCost;
  ending: Ending;
  verdict: string;
  diagnoses: Diagnosis[];
  advice: Advice[];
  proof: Proof | null;
  allocators: Allocator[];
  by_cause: Share[];
  by_region: Share[];
  by_thread: { pid: number; tid: number; comm: string; faults: number }[];
  samples: number;
  account: {
    /** CPU time by what it went into; absent where the kernel's stacks could not be seen. */
    cpu?: TimePart[];
    /** Elapsed time by what the program did or waited for; absent where too little was seen. */
    elapsed?: TimePart[];
  };
  time: {
    measured: Histogram | null;
    by_cause: [string, Histogram][];
    total_ns: Estimate | null;
    method: string;
    share_of_cpu: Estimate | null;
    share_of_wall: Estimate | null;
    mm_calls: { call: string; calls: number; bytes: number; time: number | null }[];
    lock_wait: number | null;
    lock_waits: number;
  };
  churn: {
    refault_ratio: Estimate | null;
    faults: Estimate | null;
    bytes: number;
    released_sizes: Histogram;
    release_sites: Site[];
    regrow_sites: Site[];
    refault_sites: Site[];
    /** Each way in which memory goes and comes back, most faults first. */
    routes: { cause: string; region: string; faults: number; released_sizes: Histogram }[];
  };
  sites: Site[];
  flame: FlameNode;
  fault_map: FaultMap;
  timeline: { interval: number; points: TimelinePoint[]; pressure: PressurePoint[]; gaps: number; notes?: string[] };
  collection: {
    mode: string;
    whole_machine: boolean;
    attached: boolean;
    latency_windows: [number, number][];
    fault_windows: [number, number][];
    own_cost: number;
    notes: string[];
  };
}

/** A page about the findings of a recording. */
export interface Report {
  kind: "findings";
  generator: string;
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
  /** CPU samples and other events of the same recording. */
  profile: ProfileData | null;
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
