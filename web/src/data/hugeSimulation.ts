/** The page about simulated huge pages, as `crates/model/src/huge_simulation.rs` writes it. */
import type { Controlled, Configuration, ReuseCurve } from "./schema";
export type { Moment, HugeMap, Controlled, Configuration, ReuseCurve } from "./schema";

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
