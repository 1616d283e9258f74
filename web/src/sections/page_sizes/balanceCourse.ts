/** What the controller saw and did, over time. */
import type { BalancePoint, Balance } from "../../data/schema";
import { h } from "../../dom";
import { legend, timePane, type Line, type Pane } from "../../draw/series";
import { axisNanos, compact, count, nanos, percent } from "../../format";
import type { Section } from "../section";
import { rate } from "./words";

export const course: Section<Balance> = {
  id: "balance-course",
  title: "Page sizes over time",
  nav: "Over time",
  applies: (balance) => balance.points.length > 1,
  intro: (balance) => `What a unit of work cost (${balance.signal}) and how many huge pages there were; where the hardware counts page walks, also walks by page size, for how many intervals they have taken much time, and how much busier TLB entries for one page size are than those for the other. ${balance.elapsed > 2 * (balance.points.at(-1)?.time ?? 0) && balance.processes.some(({ map }) => map.rows.length > 0) ? "After that, base and huge pages alternated, as the map below shows." : ""}`,
  render: (balance) => {
    const { points } = balance;
    const end = points.at(-1)!.time;
    const line = (name: string, ink: string, of: (point: BalancePoint) => number | null): Line => ({ name, ink, points: points.flatMap((point) => (of(point) === null ? [] : [{ x: point.time, y: of(point)! }])) });
    const pane = (title: string, label: Pane["label"], lines: Line[], rest: Partial<Pane> = {}): HTMLElement | null => {
      const shown = lines.filter(({ points }) => points.length > 1);
      if (shown.length === 0) return null;
      const whole: Pane = { title, unit: "number", label, lines: shown, end, time: axisNanos, ...rest };
      return h("figure", {}, h("figcaption", {}, title), legend(whole), h("div", {}, timePane(whole)));
    };
    return h(
      "div",
      {},
      pane("CPU time per unit of work", nanos, [line("CPU time per unit", "rose", (point) => point.cost_ns)]),
      pane("Huge pages", count, [line("huge pages", "good", (point) => point.huge)]),
      pane("Page walks per second", rate, [line("huge pages", "churn", (point) => point.huge_walks_per_s), line("small pages", "needed", (point) => point.small_walks_per_s)]),
      pane("Share of cycles in page walks", percent, [line("in page walks", "violet", (point) => point.walk_share)]),
      balance.no_counters === null && points.some((point) => point.load > 0) && pane("Intervals in which page walks took much time", count, [line("intervals", "kernel", (point) => point.load)]),
      pane("Imbalance of TLB entries when last computed, logarithmic", compact, [line("imbalance", "violet", (point) => point.imbalance)], { log: true }),
      pane("Resident memory", count, [line("resident", "kernel", (point) => point.rss)], { unit: "bytes" }),
    );
  },
};
