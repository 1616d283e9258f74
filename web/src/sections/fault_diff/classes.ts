/** The mix of kinds side by side. */
import type { ClassChange, FaultDiffPage } from "../../data/faultDiff";
import { h } from "../../dom";
import { labelled } from "../../draw/bars";
import { count, percent } from "../../format";
import type { Section } from "../section";
import { kindName, sideLegend, verdict } from "./figures";

export const classes: Section<FaultDiffPage> = {
  id: "diff-classes",
  title: "Kinds of faults",
  nav: "Kinds",
  applies: (report) => report.diff.classes.length > 0,
  intro: () => "Share of each kind among the faults, and its share of their whole time without the tracer's cost.",
  render: (report) => {
    const { classes } = report.diff;
    const most = (of: (change: ClassChange) => { a: number; b: number }) => Math.max(...classes.map((c) => Math.max(of(c).a, of(c).b)), 1e-9);
    const [shares, times] = [most((c) => c.share), most((c) => c.time_share.corrected)];
    const row = (change: ClassChange) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, kindName(report, change.class)),
        h("td", { class: "number" }, count(change.faults[0])),
        h("td", { class: "number" }, count(change.faults[1])),
        pair(change.share.a, change.share.b, shares),
        h("td", {}, verdict(change.test, report.diff.phases?.some((found) => found.class === change.class))),
        pair(change.time_share.corrected.a, change.time_share.corrected.b, times),
      );
    return h(
      "div",
      {},
      sideLegend(report),
      h("div", { class: "scroll" }, h("table", { class: "bars side-by-side" }, h("caption", { class: "sr" }, "Kinds of faults in both traces"), h("thead", {}, h("tr", {}, h("th", {}, "Kind"), h("th", { class: "number" }, "A"), h("th", { class: "number" }, "B"), h("th", { class: "bar-cell" }, "Share of faults"), h("th", {}), h("th", { class: "bar-cell" }, "Share of time"))), h("tbody", {}, ...classes.map(row)))),
    );
  },
};

/** Both figures as bars, A above B. */
export function pair(a: number, b: number, most: number, words: (value: number) => string = percent): HTMLElement {
  const line = (value: number, ink: string) => labelled(`kbar ${ink}`, value / most, words(value));
  return h("td", { class: "bar-cell" }, line(a, "k0"), line(b, "k1"));
}
