import type { Report } from "../../data/types";
import { h } from "../../dom";
import { choice } from "../../draw/choice";
import { faultMapView, type Colouring } from "../../draw/faultmap";
import { endOf } from "../../layout/series";
import type { Section } from "../section";

export const map: Section<Report> = {
  id: "map",
  title: "Fault map",
  nav: "Fault map",
  applies: (report) => report.findings.fault_map.cells.length > 0,
  intro: () =>
    "Where in memory (up) and when (across) pages faulted. A healthy program touches each place once; a stripe that continues to the right is the same memory, faulting again and again.",
  render: (report) => {
    const view = faultMapView(report.findings.fault_map, endOf(report.findings), (region) => report.labels.regions[region] ?? region);
    const legend = h("ul", { class: "legend" });
    const show = (by: string) => {
      view.colour(by as Colouring);
      const entries = by === "faults" ? [["heat", "stronger colour: more faults"]] : [["churn", "mostly avoidable"], ["needed", "mostly needed"]];
      legend.replaceChildren(...entries.map(([ink, name]) => h("li", {}, h("span", { class: `swatch ${ink}` }), name ?? "")), h("li", { class: "faint" }, "↑ address → time since the start"));
    };
    show("faults");
    const options: [string, string][] = [["faults", "by number of faults"], ["churn", "by avoidable or needed"]];
    return h("div", {}, h("div", { class: "pane-head" }, legend, choice("Colour", options, show)), view.element);
  },
};
