/** Refills by page size, and what the controller saw and did, over time. */
import type { Controlled, HugeSimulation, Moment } from "../../data/schema";
import { h } from "../../dom";
import { legend, timePane, type Pane } from "../../draw/series";
import { compact } from "../../format";
import type { Section } from "../section";
import { rate, seconds } from "./words";

export const course: Section<HugeSimulation> = {
  id: "simulation-course",
  title: "Refills and the controller over time",
  nav: "Over time",
  applies: (simulation) => simulation.controlled.some((run) => run.timeline.length > 1),
  intro: () =>
    "TLB refills by page size, the number of huge pages, for how many intervals refills have taken much time, and how much busier TLB entries for one page size are than those for the other. Controllers act once those intervals reach the gate; the paper's splits huge pages while the imbalance is above 20. Time is simulated.",
  render: (simulation) => h("div", {}, ...simulation.controlled.map(panes)),
};

/** Number of loaded intervals before controllers act (2560 ticks, 10 s, in the paper). */
const GATE = 2560;

function panes(run: Controlled): HTMLElement {
  const end = run.timeline.at(-1)?.at_s ?? 1;
  const points = (of: (moment: Moment) => number | null) =>
    run.timeline.flatMap((moment) => {
      const y = of(moment);
      return y === null ? [] : [{ x: moment.at_s, y }];
    });
  const pane = (title: string, rest: Partial<Pane> & Pick<Pane, "lines">): HTMLElement => {
    const whole: Pane = { title, unit: "number", label: (value) => value.toFixed(0), end, time: seconds, ...rest };
    return h("figure", {}, h("figcaption", {}, title), legend(whole), h("div", {}, timePane(whole)));
  };
  const imbalance = points((moment) => moment.imbalance);
  return h(
    "div",
    {},
    h("h3", {}, `${run.workload} with ${run.controller}`),
    pane("TLB refills per second", {
      label: rate,
      lines: [
        { name: "huge pages", ink: "churn", points: points((moment) => moment.huge_per_s) },
        { name: "small pages", ink: "needed", points: points((moment) => moment.small_per_s) },
      ],
    }),
    pane("Huge pages", { lines: [{ name: "huge pages", ink: "good", points: points((moment) => moment.huge) }] }),
    pane("Intervals in which refills took much time", { levels: [{ at: GATE, name: "gate" }], lines: [{ name: "intervals", ink: "kernel", points: points((moment) => moment.load) }] }),
    imbalance.length > 1 && pane("Imbalance of TLB entries when last computed, logarithmic", { log: true, levels: run.controller === "paper" ? [{ at: 20, name: "20: balanced enough" }] : [], label: compact, lines: [{ name: "imbalance", ink: "violet", points: imbalance }] }),
    pane("Time per access", { label: (value) => `${value.toFixed(1)} ns`, lines: [{ name: "ns per access", ink: "rose", points: points((moment) => moment.ns_per_access) }] }),
  );
}
