/** The paper's numbers beside the simulated ones. */
import type { HugeSimulationPage, Target } from "../../data/hugeSimulation";
import { h } from "../../dom";
import type { Section } from "../section";
import { change, rate } from "./words";

export const paper: Section<HugeSimulationPage> = {
  id: "paper",
  title: "The paper against simulation",
  nav: "Paper",
  applies: ({ simulation }) => simulation.paper !== null,
  intro: () =>
    "Zhu Chen et al. on a Loongson 3A4000. Both refill costs, the time of an access and the share of pricing sweeps are fitted to five of its numbers; the rest is predicted. A calibration, not a validation.",
  render: ({ simulation }) => {
    const { cases, targets, orderings, suite, sensitivity } = simulation.paper!;
    return h(
      "div",
      {},
      table(["", "Paper", "Simulated", "Within", ""], targets.map((target) => [target.name, value(target, target.paper), value(target, target.simulated), `± ${value(target, target.tolerance).replace("+", "")}`, target.holds ? "holds" : "fails"])),
      h("h3", {}, "Orderings"),
      h("ul", { class: "evidence" }, ...orderings.map((ordering) => h("li", {}, `${ordering.holds ? "Holds" : "Fails"}: ${ordering.name}`))),
      h("h3", {}, "mcf in every configuration"),
      table(["Configuration", "Score (host, small pages = 1)", "ns an access", "Huge refills", "Small refills", "Huge pages left"], cases.map((row) => [row.label, row.score.toFixed(3), row.ns_per_access.toFixed(2), rate(row.huge_per_s), rate(row.small_per_s), String(row.huge)])),
      h("h3", {}, "Other workloads in a guest with huge pages at both levels"),
      table(
        ["Workload", "THP on the host", "Both in a guest", "Paper's controller", "whole run", "Min-cost", "whole run", "Huge left: paper, min-cost, all"],
        suite.map((row) => [row.name, change(row.host), change(row.both), change(row.paper), change(row.paper_whole), change(row.min_cost), change(row.min_cost_whole), row.huge.join(", ")]),
      ),
      sensitivity.length > 0 && h("h3", {}, "Other assumptions about the machine"),
      sensitivity.length > 0 &&
        table(["Assumption", ...targets.map((target) => target.name), "Huge pages left", "What fails"], sensitivity.map((variant) => [variant.name, ...variant.targets.map(([found, holds], at) => `${value(targets[at]!, found)}${holds ? "" : " ✗"}`), String(variant.left), variant.failing.join("; ")])),
    );
  },
};

function value(target: Target, number: number): string {
  return target.unit === "change" ? change(number) : rate(number);
}

function table(head: string[], rows: string[][]): HTMLElement {
  return h(
    "div",
    { class: "scroll" },
    h("table", { class: "bars" }, h("thead", {}, h("tr", {}, ...head.map((name, at) => h("th", { class: at === 0 ? "" : "number" }, name)))), h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((text, at) => h("td", { class: at === 0 ? "" : "number" }, text)))))),
  );
}
