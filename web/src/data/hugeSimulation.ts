/** The page about simulated huge pages, as `crates/model/src/huge_simulation.rs` writes it. */

export interface Moment {
  at_s: number;
  huge_per_s: number;
  small_per_s: number;
  huge: number;
  load: number;
  imbalance: number | null;
  ns_per_access: number;
}

/** Huge pages by address and time; `layout/hugeMap.ts` tells the letters. */
export interface HugeMap {
  starts: string[];
  row_bytes: number;
  rows: string[];
}

export interface Controlled {
  workload: string;
  controller: string;
  gain: number;
  gain_whole: number;
  against_alone: number | null;
  ns_per_access: number;
  huge: number;
  possible: number;
  split: number;
  built: number;
  reason: string | null;
  timeline: Moment[];
  map: HugeMap;
}

export interface Configuration {
  name: string;
  workload: string;
  ns_per_access: number;
  speed: number;
  small_per_1000: number;
  huge_per_1000: number;
  refill_share: number;
}

export interface ReuseCurve {
  workload: string;
  page_bytes: number;
  sampled: number;
  points: [number, number][];
  error: number;
}

export interface HugeSimulationPage {
  kind: "huge_simulation";
  generator: string;
  simulation: {
    machine: string;
    workloads: string[];
    notes: string[];
    configurations: Configuration[];
    controlled: Controlled[];
    sweep: { huge: number; ns_per_access: number; small_per_1000: number; huge_per_1000: number }[];
    reuse: ReuseCurve[];
    reaches: { machine: string; page_bytes: number; entries: number }[];
  };
}
