/** Kinds of faults: their names and colours, the same in every part of the page. */
import type { FaultPathsPage } from "../../data/faultPaths";
import { h } from "../../dom";

/** Number of distinguishable colours; further kinds share a grey. */
const INKS = 8;

export interface Kinds {
  ink: (kind: string) => string;
  name: (kind: string) => string;
}

/** The most frequent kinds have colours of their own. */
export function kindsOf(report: FaultPathsPage): Kinds {
  const rank = new Map<string, number>(report.findings.classes.map(({ class: kind }, index) => [kind, index]));
  return {
    ink: (kind) => {
      const at = rank.get(kind);
      return at === undefined || at >= INKS ? "kx" : `k${at}`;
    },
    name: (kind) => report.labels.classes[kind] ?? kind,
  };
}

/** "All faults" and each kind, to choose what a part of the page is about. */
export function kindPicker(report: FaultPathsPage, label: string, chosen: (kind: string | null) => void): HTMLElement {
  const kinds = kindsOf(report);
  const options = report.findings.classes.map(({ class: kind, faults }) => h("option", { value: kind }, `${kinds.name(kind)} (${faults.toLocaleString("en-US")})`));
  const select = h("select", { "aria-label": label }, h("option", { value: "" }, `all kinds of faults (${report.findings.faults.toLocaleString("en-US")})`), ...options);
  select.addEventListener("change", () => chosen(select.value === "" ? null : select.value));
  return select;
}

export function kindLegend(report: FaultPathsPage): HTMLElement {
  const kinds = kindsOf(report);
  return h("ul", { class: "legend" }, ...report.findings.classes.map(({ class: kind }) => h("li", {}, h("span", { class: `swatch kbar ${kinds.ink(kind)}` }), kinds.name(kind))));
}
