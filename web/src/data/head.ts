/** What all documents have in common, as written by `crates/report/src/html/head.rs`. */
import type { Advice, Diagnosis, HostSnapshot, Proof } from "./schema";

export interface Head {
  /** The document's command; empty where it has none. */
  command: string[];
  /** The process that the command became, or those that were already running. */
  pids: number[];
  /** The machine that recorded; empty strings and zeros if nothing is known about it. */
  host: HostSnapshot;
  /** The answer in a sentence or two; empty where there is none. */
  verdict: string;
  /** What is wrong, what the verdict is about first. */
  diagnoses: Diagnosis[];
  /** What to change, best first. */
  advice: Advice[];
  /** Whether it helped. */
  proof: Proof | null;
  /** What is missing, in words with counts. */
  losses: string[];
  /** What a reader should know. */
  notes: string[];
}
