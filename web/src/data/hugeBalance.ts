/** The page about huge pages of running programs, as `crates/model/src/balance.rs` writes it. Times are nanoseconds. */
import type { HugeMap } from "./hugeSimulation";
import type { Estimate } from "./types";
import type { BalancePoint, PageState, Changes } from "./schema";
export type { BalancePoint, PageState, Changes } from "./schema";

export interface HugeBalancePage {
  kind: "huge_balance";
  generator: string;
  balance: {
    command: string[];
    processes: { pid: number; comm: string; guest_memory: { start: string; length: number; misaligned_by: number }[]; map: HugeMap }[];
    applied: boolean;
    elapsed: number;
    huge_page: number;
    signal: string;
    walk_events: string | null;
    no_counters: string | null;
    controller: string;
    max_rss: number | null;
    before: PageState;
    after: PageState;
    peak_rss: number;
    built: Changes;
    split: Changes;
    refused: { reason: string; count: number }[];
    fights: number;
    controller_cpu: number;
    verdict: { effect: "help" | "hurt" | "no_measurable_effect" | "unknown"; basis: "interleaved" | "measured" | "walks" | "probe" | "none"; cpu_change: Estimate | null; rss_growth: number; sentence: string };
    notes: string[];
    points: BalancePoint[];
  };
}
