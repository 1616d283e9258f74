/** Figures of both sides, worded the same in every part of the page. */
import type { FaultDiffPage, Test } from "../../data/faultDiff";
import { h } from "../../dom";
import { nanos, percent } from "../../format";

/** The last parts of a path distinguish files; full names are at the top. */
export function sideNames(report: FaultDiffPage): [string, string] {
  const { a, b } = report.diff;
  const parts = [a.name, b.name].map((name) => name.split("/").filter((part) => part !== ""));
  for (let keep = 1; keep <= 4; keep += 1) {
    const [left, right] = parts.map((part) => part.slice(-keep).join("/")) as [string, string];
    if (left !== right) return [left || "A", right || "B"];
  }
  return ["A", "B"];
}

export const kindName = (report: FaultDiffPage, kind: string | null): string => (kind === null ? "all faults" : (report.labels.classes[kind] ?? kind));
export const layerName = (report: FaultDiffPage, layer: string): string => report.labels.layers[layer] ?? layer;

export function figure(unit: "ns" | "share" | "per_fault", value: number): string {
  if (unit === "ns") return nanos(value);
  return unit === "share" ? percent(value) : value.toFixed(value < 10 ? 2 : 1);
}

/** How certain a difference is; `phases`: it is confined to few phases of these recordings. */
export function verdict(test: Test | null, phases = false): HTMLElement | null {
  if (!test) return null;
  if (phases) return h("span", { class: "faint" }, "in few phases");
  return test.significant ? h("strong", { class: "sure" }, "sure") : h("span", { class: "faint" }, "may be chance");
}

export const sideLegend = (report: FaultDiffPage): HTMLElement => {
  const [a, b] = sideNames(report);
  return h("ul", { class: "legend" }, h("li", {}, h("span", { class: "swatch kbar k0" }), `A ${a}`), h("li", {}, h("span", { class: "swatch kbar k1" }), `B ${b}`));
};
