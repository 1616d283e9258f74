/** Both whole runs: time, faults, memory, causes of faults. */
import type { FigureChange, RunDiff } from "../../data/schema";
import { h } from "../../dom";
import { bytes, count, nanos } from "../../format";
import type { Section } from "../section";

const FIGURES: Record<FigureChange["quantity"], [string, (value: number) => string]> = {
  cpu_time: ["CPU time", nanos],
  elapsed_time: ["Elapsed time", nanos],
  faults: ["Page faults", count],
  major_faults: ["Page faults that needed I/O", count],
  peak_memory: ["Peak memory", bytes],
  refaults: ["Refaults (waits for the store)", count],
  pages_written: ["Pages written to the store", count],
};

export const runs: Section<RunDiff> = {
  id: "runs",
  title: "Both runs",
  nav: "Runs",
  applies: ({ figures, causes }) => figures.length + causes.length > 0,
  intro: () => "What each run used from start to end. Changes in bold are larger than those between two runs of one program.",
  render: (diff) => {
    const figures = diff.figures.filter(({ a, b }) => a > 0 || b > 0).map(({ quantity, a, b, differs }) => row(FIGURES[quantity][0], a, b, differs, FIGURES[quantity][1]));
    const causes = diff.causes.filter(({ differs }) => differs).map(({ label, a, b }) => row(`Faults: ${label}`, a.value, b.value, true, (value) => count(Math.round(value))));
    return h("div", { class: "scroll" }, h("table", { class: "functions plain" }, h("caption", { class: "sr" }, "Both runs"), h("thead", {}, h("tr", {}, h("th", {}, ""), h("th", { class: "number" }, "A"), h("th", { class: "number" }, "B"), h("th", { class: "number" }, "Change"))), h("tbody", {}, ...figures, ...causes)));
  },
};

function row(name: string, a: number, b: number, differs: boolean, write: (value: number) => string): HTMLElement {
  return h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number" }, write(a)), h("td", { class: "number" }, write(b)), h("td", { class: "number" }, h(differs ? "strong" : "span", {}, change(a, b))));
}

function change(a: number, b: number): string {
  if (a === 0 || b === 0) return a === b ? "" : a === 0 ? "new" : "gone";
  const ratio = b / a;
  if (Math.abs(ratio - 1) < 0.0005) return "same";
  return ratio >= 10 ? `×${ratio.toFixed(0)}` : `${ratio < 1 ? "−" : "+"}${Math.abs(100 * (ratio - 1)).toFixed(1)} %`;
}
