/**
 * The contents of a page, as written by `crates/report/src/html/document.rs`: the parts that exist.
 */
import type { FaultDiffPage } from "./faultDiff";
import type { FaultPathsPage } from "./faultPaths";
import type { Head } from "./head";
import type { ProfileData } from "./profile";
import type { ProfileDiffPage } from "./profileDiff";
import type { Balance, HugeSimulation, Memory, PagingTimeline, RunDiff } from "./schema";
import type { Samples, Sheets } from "./sheets";
import type { Report } from "./types";

/** An account of memory of its own. */
export interface MemoryPart {
  found: Memory;
  /** For each advice, labelled texts to copy. */
  exports: [string, string][][];
}

/** The parts; a page has those of its document. */
export interface Parts {
  /** Faults of a recording: causes, costs, advice. */
  faults: Report;
  /** Where memory is. */
  memory: MemoryPart;
  /** CPU samples and other events. */
  profile: ProfileData;
  /** Faults of a trace. */
  paths: FaultPathsPage;
  /** A run under user-level paging. */
  paging: PagingTimeline;
  /** Huge pages of running programs. */
  balance: Balance;
  /** Simulated page sizes. */
  simulation: HugeSimulation;
  /** Two whole runs. */
  run_diff: RunDiff;
  /** Two profiles. */
  profile_diff: ProfileDiffPage;
  /** Two traces. */
  paths_diff: FaultDiffPage;
  /** Tables of an answer without parts of its own. */
  sheets: Sheets;
  /** Samples beside them. */
  samples: Samples;
}

export interface Page extends Partial<Parts>, Head {
  generator: string;
  /** The command or the files that the page is about. */
  subject: string;
}
