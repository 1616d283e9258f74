/** The page about a run under user-level paging, as `crates/model/src/paging.rs` writes it. */

import type { Estimate } from "./types";

export interface PagingPoint {
  time_s: number;
  processes: number;
  resident_bytes: number;
  limit_bytes: number;
  unmanaged_bytes: number;
  store_bytes: number;
  first_touches: number;
  refaults: number;
  seen_used: number;
  pages_read: number;
  pages_read_ahead: number;
  pages_written: number;
  pages_evicted: number;
  throttled_ns: number;
  watched_soon: number;
  used_soon: number;
  written_soon: number;
  watched_later: number;
  used_later: number;
}

/** Returns after so many evictions. */
export interface DistanceBucket {
  from_pages: number;
  to_pages: number;
  refaults: number;
  ahead: number;
}

export interface RefaultDistances {
  samples: number;
  sampled_pages: number;
  buckets: DistanceBucket[];
  larger_budget: { more_bytes: number; spared: Estimate } | null;
}

export interface PagingPage {
  kind: "paging";
  generator: string;
  timeline: {
    command: string[];
    ending: string;
    memory_bytes: number;
    policy: string;
    store: string;
    interval_s: number;
    points: PagingPoint[];
    refault_distances: RefaultDistances;
  };
}
