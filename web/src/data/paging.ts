/** The page about a run under user-level paging, as `crates/model/src/paging.rs` writes it. */

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
  };
}
