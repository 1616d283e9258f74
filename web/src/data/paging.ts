/** The page about a run under user-level paging, as `crates/report/src/html/paging.rs` writes it. */
import type { PagingTimeline } from "./schema";
export type { PagingPoint, DistanceBucket, RefaultDistances } from "./schema";

export interface PagingPage {
  kind: "paging";
  generator: string;
  timeline: PagingTimeline;
}
