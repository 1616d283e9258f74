/** The kinds of faults side by side: number, duration and peaks. */
import type { ClassFindings, FaultPathsPage, Latency } from "../../data/faultPaths";
import { h } from "../../dom";
import { strip } from "../../draw/bars";
import { count, interval, nanos, percent } from "../../format";
import type { Section } from "../section";
import { kindsOf } from "./kinds";

export const classes: Section<FaultPathsPage> = {
  id: "classes",
  title: "Kinds of faults",
  nav: "Kinds",
  applies: ({ findings }) => findings.classes.length > 0,
  intro: () => "Determined by what each fault did, so a kind means the same on every kernel. The upper bar is its share of the faults, the lower its share of their time, without the tracer's cost.",
  render: (report) => {
    const { classes } = report.findings;
    const kinds = kindsOf(report);
    const most = Math.max(...classes.map((found) => Math.max(found.share, found.time_share)));
    const heads = ["Faults", "Share", "Time", "Median", "as traced", "99th", "Paths"];
    return h(
      "div",
      { class: "scroll" },
      h(
        "table",
        { class: "bars kinds" },
        h("caption", { class: "sr" }, "Kinds of faults"),
        h("thead", {}, h("tr", {}, h("th", {}, "Kind"), h("th", { class: "bar-cell" }, h("span", { class: "sr" }, "bars")), ...heads.map((head) => h("th", { class: "number" }, head)), h("th", {}, "Peaks"))),
        h("tbody", {}, ...classes.map((found) => row(found, kinds.name(found.class), kinds.ink(found.class), most))),
      ),
    );
  },
};

function row(found: ClassFindings, name: string, ink: string, most: number): HTMLElement {
  const { raw, corrected, bounds } = found.latency;
  const figures = [count(found.faults), percent(found.share), percent(found.time_share), interval(corrected.p50_ns, bounds?.p50_ns), nanos(raw.p50_ns), interval(corrected.p99_ns, bounds?.p99_ns), count(found.paths)];
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, name),
    h("td", { class: "bar-cell" }, strip(`kbar ${ink}`, found.share / most), strip(`kbar thin ${ink}`, found.time_share / most)),
    ...figures.map((figure, at) => h("td", { class: at === 4 ? "number faint" : "number" }, figure)),
    h("td", { class: "peaks" }, peaks(corrected)),
  );
}

/** `6.40 µs (92 %), 11.9 µs (6 %)`: the three largest, from fast to slow. */
export function peaks(latency: Latency): string {
  const largest = [...latency.modes].sort((a, b) => b.share - a.share).slice(0, 3).sort((a, b) => a.peak_ns - b.peak_ns);
  return largest.map((mode) => `${nanos(mode.peak_ns)} (${percent(mode.share)})`).join(", ");
}
