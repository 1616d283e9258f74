/** The cost of an access at each number of huge pages. */
import type { HugeSimulation } from "../../data/schema";
import { h } from "../../dom";
import { legend, timePane, type Pane } from "../../draw/series";
import { count } from "../../format";
import type { Section } from "../section";

export const sweep: Section<HugeSimulation> = {
  id: "sweep",
  title: "Cost at each number of huge pages",
  nav: "Sweep",
  applies: (simulation) => simulation.sweep.length > 1,
  intro: (simulation) => `${simulation.workloads[0] ?? "The program"} alone, with a fixed number of huge pages, those with most pages touched first.`,
  render: (simulation) => {
    const { sweep } = simulation;
    const end = sweep.at(-1)?.huge ?? 1;
    const best = sweep.reduce((a, b) => (b.ns_per_access < a.ns_per_access ? b : a));
    const pane = (title: string, rest: Pick<Pane, "lines" | "label">): HTMLElement => {
      const whole: Pane = { title, unit: "number", end, time: count, across: "huge pages held", marks: [best.huge], ...rest };
      return h("figure", {}, h("figcaption", {}, title), legend(whole), h("div", {}, timePane(whole)));
    };
    return h(
      "div",
      {},
      h("p", {}, `Least with ${count(best.huge)} of ${count(end)}: ${best.ns_per_access.toFixed(2)} ns per access.`),
      pane("Nanoseconds per access, by number of huge pages", { label: (value) => `${value.toPrecision(3)} ns`, lines: [{ name: "ns per access", ink: "rose", points: sweep.map((point) => ({ x: point.huge, y: point.ns_per_access })) }] }),
      pane("Refills in 1000 accesses", {
        label: (value) => String(Number(value.toPrecision(3))),
        lines: [
          { name: "huge pages", ink: "churn", points: sweep.map((point) => ({ x: point.huge, y: point.huge_per_1000 })) },
          { name: "small pages", ink: "needed", points: sweep.map((point) => ({ x: point.huge, y: point.small_per_1000 })) },
        ],
      }),
    );
  },
};
