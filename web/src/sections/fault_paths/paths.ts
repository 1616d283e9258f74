/** The most frequent paths in full, and trees that many faults share. */
import type { FaultPathsPage, PathFindings, TreePattern } from "../../data/faultPaths";
import { h } from "../../dom";
import { count, nanos, percent } from "../../format";
import { indented } from "../../layout/outline";
import type { Section } from "../section";
import { kindsOf } from "./kinds";

const SHOWN = 12;

export const paths: Section<FaultPathsPage> = {
  id: "paths",
  title: "Frequent paths",
  nav: "Paths",
  applies: (report) => report.findings.paths.length > 0,
  intro: (report) => `Faults by what they call down to the third level, repeats merged: ${count(report.findings.distinct_paths)} different call trees in all. Open one to read it.`,
  render: (report) => h("div", {}, ...folded(report.findings.paths.map((path) => pathItem(report, path))), ...trees(report.findings.trees)),
};

function folded(items: HTMLElement[]): HTMLElement[] {
  if (items.length <= SHOWN) return items;
  return [...items.slice(0, SHOWN), h("details", { class: "more" }, h("summary", {}, `${count(items.length - SHOWN)} more`), ...items.slice(SHOWN))];
}

function pathItem(report: FaultPathsPage, path: PathFindings): HTMLElement {
  const kinds = kindsOf(report);
  const { raw, corrected } = path.latency;
  const bar = h("span", { class: `bar kbar ${kinds.ink(path.class)}` });
  bar.style.width = `${Math.max(0.4, path.share * 100)}%`;
  const words = `${count(path.faults)} faults · ${percent(path.share)} · ${nanos(corrected.p50_ns)} (${nanos(raw.p50_ns)} as traced) · ${path.mean_calls.toFixed(0)} calls`;
  return h("details", { class: "site path" }, h("summary", {}, h("span", { class: "site-head" }, h("span", {}, kinds.name(path.class)), h("span", { class: "faint" }, words)), h("span", { class: "track" }, bar)), outline(path.outline));
}

function outline(text: string): HTMLElement {
  return h("div", { class: "outline" }, ...indented(text).map(({ depth, text }) => {
    const line = h("div", {}, h("code", {}, text));
    line.style.paddingLeft = `${depth * 18}px`;
    return line;
  }));
}

function trees(found: TreePattern[]): HTMLElement[] {
  if (found.length === 0) return [];
  const item = (tree: TreePattern) => {
    const calls = tree.calls[0] === tree.calls[1] ? count(tree.calls[0]) : `${count(tree.calls[0])} to ${count(tree.calls[1])}`;
    const words = `${percent(tree.corrected_time_share)} of the time (${percent(tree.time_share)} as traced) · ${count(tree.occurrences)} in ${count(tree.faults)} faults · ${nanos(tree.mean_ns)} each · ${calls} calls`;
    const bar = h("span", { class: "bar kbar k0" });
    bar.style.width = `${Math.max(0.4, tree.corrected_time_share * 100)}%`;
    return h("details", { class: "site path" }, h("summary", {}, h("span", { class: "site-head" }, h("code", {}, tree.root), h("span", { class: "faint" }, words)), h("span", { class: "track" }, bar)), outline(tree.outline));
  };
  return [h("h3", {}, "Whole call trees by their share of time, repeated children merged"), ...folded(found.map(item))];
}
