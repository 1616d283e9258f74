/** Functions and paths that differ, and those that only one of the traces has. */
import type { ExtraFunction, FaultDiffPage, FunctionChange, PathChange } from "../../data/faultDiff";
import { h } from "../../dom";
import { signedNanos } from "../../draw/shift";
import { count, counted, nanos, percent } from "../../format";
import { indented } from "../../layout/outline";
import type { Section } from "../section";
import { pair } from "./classes";
import { kindName, sideLegend, verdict } from "./figures";

const SHOWN = 14;

export const functions: Section<FaultDiffPage> = {
  id: "diff-functions",
  title: "Functions in faults",
  nav: "Functions",
  applies: (report) => report.diff.functions.length > 0 || report.diff.extra.length > 0,
  intro: () => "Own time of each function in faults of the same kind, per fault, without the tracer's cost; the largest change first.",
  render: (report) => h("div", {}, sideLegend(report), table(report, report.diff.functions.slice(0, SHOWN)), ...extras(report.diff.extra)),
};

function table(report: FaultDiffPage, found: FunctionChange[]): HTMLElement {
  const most = Math.max(...found.map((c) => Math.max(c.own_ns.corrected.a, c.own_ns.corrected.b)), 1e-9);
  const row = (change: FunctionChange) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("code", {}, change.function), h("div", { class: "faint" }, kindName(report, change.class)), slow(change)),
      pair(change.own_ns.corrected.a, change.own_ns.corrected.b, most, nanos),
      h("td", { class: "number" }, signedNanos(change.change.value), h("div", { class: "faint" }, range(change.change))),
      h("td", {}, verdict(change.time_test)),
      h("td", { class: "number" }, change.calls.a.toFixed(2), h("div", {}, change.calls.b.toFixed(2))),
      h("td", { class: "number faint" }, nanos(change.own_ns.raw.a), h("div", {}, nanos(change.own_ns.raw.b))),
    );
  return h("div", { class: "scroll" }, h("table", { class: "bars side-by-side" }, h("caption", { class: "sr" }, "Functions in both traces"), h("thead", {}, h("tr", {}, h("th", {}, "Function"), h("th", { class: "bar-cell" }, "Own time per fault"), h("th", { class: "number" }, "B − A"), h("th", {}), h("th", { class: "number" }, "Calls"), h("th", { class: "number" }, "as traced"))), h("tbody", {}, ...found.map(row))));
}

/** An interval of zero width comes from a single block of faults and is not informative. */
const range = ({ low, high }: { low: number; high: number }): string => (low === high ? "too few faults" : `${signedNanos(low)} to ${signedNanos(high)}`);

function slow(change: FunctionChange): HTMLElement | null {
  if (!change.slow || !change.slow.test.significant) return null;
  const { above_ns, per_fault, slow_ns } = change.slow;
  return h("div", { class: "faint" }, `slow calls, above ${nanos(above_ns)}: ${percent(per_fault.a)} → ${percent(per_fault.b)} of faults, then ${nanos(Math.max(slow_ns.a, slow_ns.b))}`);
}

function extras(found: ExtraFunction[]): HTMLElement[] {
  const list = (inB: boolean) => {
    const own = found.filter((extra) => extra.in_b === inB).slice(0, 24);
    const items = own.map((extra) => h("li", {}, h("code", {}, extra.function), ` in ${counted(extra.faults, "fault")} (${percent(extra.share)}), ${percent(extra.time_share)} of the time`));
    return h("div", {}, h("h3", {}, `Only in ${inB ? "B" : "A"}`), items.length > 0 ? h("ul", { class: "evidence" }, ...items) : h("p", { class: "faint" }, "None."));
  };
  return found.length === 0 ? [] : [h("div", { class: "columns" }, list(false), list(true))];
}

export const pathChanges: Section<FaultDiffPage> = {
  id: "diff-paths",
  title: "Paths",
  nav: "Paths",
  applies: (report) => report.diff.paths.length > 0,
  intro: () => "Share of each path among the faults of its kind, the most different first.",
  render: (report) => h("div", {}, sideLegend(report), h("div", { class: "scroll" }, h("table", { class: "bars side-by-side" }, h("caption", { class: "sr" }, "Paths in both traces"), h("thead", {}, h("tr", {}, h("th", {}, "Path"), h("th", { class: "number" }, "A"), h("th", { class: "number" }, "B"), h("th", { class: "bar-cell" }, "Share of its kind"), h("th", {}), h("th", { class: "bar-cell" }, "Mean, corrected"))), h("tbody", {}, ...report.diff.paths.slice(0, SHOWN).map((path) => pathRow(report, path)))))),
};

function pathRow(report: FaultDiffPage, path: PathChange): HTMLElement {
  const most = Math.max(path.mean_ns.corrected.a, path.mean_ns.corrected.b, 1e-9);
  const lines = indented(path.outline).map(({ depth, text }) => {
    const line = h("div", {}, h("code", {}, text));
    line.style.paddingLeft = `${depth * 16}px`;
    return line;
  });
  const words = kindName(report, path.class);
  return h("tr", {}, h("th", { scope: "row" }, h("details", { class: "path" }, h("summary", {}, words), h("div", { class: "outline" }, ...lines))), h("td", { class: "number" }, count(path.faults[0])), h("td", { class: "number" }, count(path.faults[1])), pair(path.share.a, path.share.b, 1), h("td", {}, verdict(path.test)), pair(path.mean_ns.corrected.a, path.mean_ns.corrected.b, most, (ns) => (ns === 0 ? "–" : nanos(ns))));
}
