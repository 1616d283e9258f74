/** The most frequent paths in full, and trees that many faults share. */
import type { FaultPathsPage, PathFindings, TreePattern } from "../../data/faultPaths";
import { h } from "../../dom";
import { track } from "../../draw/bars";
import { count, counted, interval, nanos, percent, within } from "../../format";
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
  render: (report) => h("div", {}, ...folded(report.findings.paths.map((path) => pathItem(report, path))), ...trees(report)),
};

function folded(items: HTMLElement[]): HTMLElement[] {
  if (items.length <= SHOWN) return items;
  return [...items.slice(0, SHOWN), h("details", { class: "more" }, h("summary", {}, `${count(items.length - SHOWN)} more`), ...items.slice(SHOWN))];
}

function pathItem(report: FaultPathsPage, path: PathFindings): HTMLElement {
  const kinds = kindsOf(report);
  const { raw, corrected, bounds } = path.latency;
  const words = `${counted(path.faults, "fault")} · ${percent(path.share)} · ${bounds === null ? `${nanos(raw.p50_ns)} as traced` : `${interval(corrected.p50_ns, bounds.p50_ns)} (${nanos(raw.p50_ns)} as traced)`} · ${path.mean_calls.toFixed(0)} calls`;
  return h("details", { class: "site path" }, h("summary", {}, h("span", { class: "site-head" }, h("span", {}, kinds.name(path.class)), h("span", { class: "faint" }, words)), track(`kbar ${kinds.ink(path.class)}`, path.share)), outline(path.outline));
}

function outline(text: string): HTMLElement {
  return h("div", { class: "outline" }, ...indented(text).map(({ depth, text }) => {
    const line = h("div", {}, h("code", {}, text));
    line.style.paddingLeft = `${depth * 18}px`;
    return line;
  }));
}

function trees(report: FaultPathsPage): HTMLElement[] {
  const { trees: found, trees_left_out } = report.findings;
  if (found.length === 0) return [];
  const kinds = kindsOf(report);
  const item = (tree: TreePattern) => {
    const calls = tree.calls[0] === tree.calls[1] ? count(tree.calls[0]) : `${count(tree.calls[0])} to ${count(tree.calls[1])}`;
    const words = `${percent(tree.corrected_time_share)} of the time · ${counted(tree.faults, "fault")} · mean ${within(tree.mean_ns, tree.error_ns)}, 99th percentile ${within(tree.p99_ns, tree.error_ns)} · ${calls} ${calls === "1" ? "call" : "calls"}`;
    const of = `${tree.complete ? "All of the fault" : "A part of the fault"}: ${tree.class === null ? "several kinds" : kinds.name(tree.class)}.`;
    const own = tree.corrected_self_ns / Math.max(1, tree.corrected_total_ns);
    const more = `${of} ${count(tree.occurrences)} times; ${percent(own)} of its time in ${tree.root} itself. As traced: ${percent(tree.time_share)} of the time, mean ${nanos(tree.raw_mean_ns)}.`;
    return h("details", { class: "site path" }, h("summary", {}, h("span", { class: "site-head" }, h("code", {}, tree.root), h("span", { class: "faint" }, words)), track(`kbar ${tree.class === null ? "k0" : kinds.ink(tree.class)}`, tree.corrected_time_share)), h("p", { class: "faint" }, more), outline(tree.outline));
  };
  const intro = `Calls with all that they call, repeats folded (“×3–15”, “in turn”), in a hundredth of the faults or of their time and more. What is always inside one larger tree is not named apart; trees inside one another share their time.${trees_left_out > 0 ? ` ${count(trees_left_out)} smaller ones are left out.` : ""}`;
  return [h("h3", {}, "Whole call trees by their share of time"), h("p", { class: "faint" }, intro), ...folded(found.map(item))];
}
