/** What paging cost a run, in figures. */
import type { PagingPage, PagingPoint } from "../../data/paging";
import { ended } from "../../data/ending";
import { h } from "../../dom";
import { bytes, count, percent } from "../../format";
import type { Section } from "../section";
import { tile, verdict, type Tone } from "../head";

export const answer: Section<PagingPage> = {
  id: "answer",
  title: "",
  nav: "",
  applies: () => true,
  render: ({ timeline }) => {
    const last = timeline.points.at(-1);
    const peak = timeline.points.reduce((most, point) => Math.max(most, point.resident_bytes), 0);
    const stored = timeline.points.reduce((most, point) => Math.max(most, point.store_bytes), 0);
    return h(
      "div",
      {},
      verdict(...badge(timeline, peak), headline(last)),
      last !== undefined &&
        h(
          "div",
          { class: "tiles" },
          tile("Resident at most", bytes(peak), `managed memory, of a budget of ${bytes(timeline.memory_bytes)} ${timeline.memory_is_each ? "for each process" : "for all processes together"}`),
          tile("In the store at most", bytes(stored), `store ${timeline.store}`),
          tile("Pages read", count(last.pages_read), `${percent(share(last.pages_read_ahead, last.pages_read))} of them before anyone asked`),
          tile("Pages written", count(last.pages_written), `of ${count(last.pages_evicted)} evicted`),
          tile("Waited for room", `${(last.throttled_ns / 1e9).toFixed(2)} s`, "all faults together"),
        ),
      h("p", { class: "faint" }, `Policy ${timeline.policy}; the program ${ended(timeline.ending)}; a reading each ${timeline.interval / 1e9} s.`),
    );
  },
};

const share = (part: number, whole: number): number => (whole > 0 ? part / whole : 0);

/** Whether the budget held: managed memory is what it is for. */
function badge({ points, memory_bytes, memory_is_each }: PagingPage["timeline"], peak: number): [string, Tone] {
  if (points.length === 0) return ["No readings", "neutral"];
  if (memory_is_each) return ["A budget per process", "neutral"];
  return peak <= memory_bytes ? ["Within its budget", "good"] : ["Beyond its budget at times", "bad"];
}

function headline(last: PagingPoint | undefined): string {
  if (last === undefined) return "The timeline holds no point";
  return `${count(last.refaults)} waits for the store in ${(last.time / 1e9).toFixed(1)} s`;
}
