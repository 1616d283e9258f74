/** The cost of paging for a run, in figures. */
import type { PagingPoint, PagingTimeline } from "../../data/schema";
import { h } from "../../dom";
import { bytes, count, percent } from "../../format";
import type { Answer } from "../answer";
import { failure, tile, type Tone } from "../head";

export const answer: Answer<PagingTimeline> = {
  title: "Paging",
  nav: "Paging",
  badge,
  headline: (_, { verdict }) => verdict,
  below: ({ ending }) => [failure(ending)],
  account: (timeline) => {
    const last = timeline.points.at(-1);
    if (last === undefined) return [];
    const stored = most(timeline, (point) => point.store_bytes);
    return [
      h(
        "div",
        { class: "tiles" },
        tile("Resident at most", bytes(peak(timeline)), `managed memory, of a budget of ${bytes(timeline.memory_bytes)} ${timeline.memory_is_each ? "for each process" : "for all processes together"}`),
        tile("In the store at most", bytes(stored), `store ${timeline.store}`),
        tile("Pages read", count(last.pages_read), `${percent(share(last.pages_read_ahead, last.pages_read))} of them before they were needed`),
        tile("Pages written", count(last.pages_written), `of ${count(last.pages_evicted)} evicted`),
        tile("Waited for room", `${(last.throttled_ns / 1e9).toFixed(2)} s`, "all faults together"),
      ),
    ];
  },
};

const most = ({ points }: PagingTimeline, of: (point: PagingPoint) => number): number => points.reduce((most, point) => Math.max(most, of(point)), 0);
const peak = (timeline: PagingTimeline): number => most(timeline, (point) => point.resident_bytes);
const share = (part: number, whole: number): number => (whole > 0 ? part / whole : 0);

/** Whether the budget was kept; it applies to managed memory. */
function badge(timeline: PagingTimeline): [string, Tone] {
  if (timeline.points.length === 0) return ["No readings", "neutral"];
  if (timeline.memory_is_each) return ["A budget per process", "neutral"];
  return peak(timeline) <= timeline.memory_bytes ? ["Within its budget", "good"] : ["Beyond its budget at times", "bad"];
}
