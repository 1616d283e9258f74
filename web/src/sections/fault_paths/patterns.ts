/** The pattern map: call paths as a diagram, and the parts of the chosen call. */
import type { FaultPathsPage } from "../../data/faultPaths";
import { h, type Child } from "../../dom";
import { strip } from "../../draw/bars";
import { latencyChart } from "../../draw/latency";
import { patternView } from "../../draw/patternMap";
import { count, nanos, percent, within } from "../../format";
import { callTree, pathTo, varianceShare, type Call, type CallTree } from "../../layout/callTree";
import { logAxis, quantile } from "../../layout/latency";
import { findCalls, mainPaths, timeShare } from "../../layout/patternMap";
import type { Section } from "../section";
import { kindLegend, kindPicker, kindsOf } from "./kinds";

export const patterns: Section<FaultPathsPage> = {
  id: "patterns",
  title: "Pattern map",
  nav: "Pattern map",
  applies: ({ findings }) => findings.call_map.nodes.length > 0,
  intro: () => "How faults are handled: callers on the left, what they call to the right, in the order of the calls. A line is as thick as the path is frequent, the bar in a box is its share of the time. Click a box to see what it consists of; + unfolds.",
  render: (report) => {
    const { call_map } = report.findings;
    const body = h("div", {});
    const show = (kind: string | null) => body.replaceChildren(map(report, callTree(call_map, kind)));
    show(null);
    return h("div", {}, h("div", { class: "tools" }, kindPicker(report, "Kind of faults", show), h("span", { class: "spring" }), kindLegend(report)), body, footnote(report));
  },
};

function footnote(report: FaultPathsPage): HTMLElement | null {
  const { nodes_left_out, self_ns_left_out } = report.findings.call_map;
  if (nodes_left_out === 0) return null;
  return h("p", { class: "faint" }, `${count(nodes_left_out)} small paths with ${nanos(self_ns_left_out)} of own time, as traced, are not in this map.`);
}

function map(report: FaultPathsPage, tree: CallTree): HTMLElement {
  const kinds = kindsOf(report);
  const unfolding = mainPaths(tree);
  const details = h("div", { class: "call-details", "aria-live": "polite" });
  const select = (call: Call) => details.replaceChildren(...describe(report, tree, call));
  const view = patternView(tree, unfolding, { ink: kinds.ink, kindName: kinds.name, select });
  const [root] = tree.roots;
  if (root) select(root);
  const found = h("output", { class: "faint", id: "pattern-found" });
  const search = h("input", { type: "search", id: "pattern-search", placeholder: "Find a function", title: "Text, or a regular expression", "aria-label": "Find a function by text or a regular expression", autocomplete: "off", spellcheck: "false" });
  search.addEventListener("input", () => {
    const calls = findCalls(tree, unfolding, search.value);
    found.textContent = search.value.trim() === "" ? "" : calls.length === 0 ? "No match" : `${count(calls.length)} ${calls.length === 1 ? "place" : "places"}`;
    view.mark(new Set(calls));
  });
  const main = button("Main paths", () => {
    const fresh = mainPaths(tree);
    unfolding.open = fresh.open;
    unfolding.openSmall = fresh.openSmall;
    view.redraw();
  });
  const all = button("Unfold what matters", () => {
    for (const call of tree.calls) if (call.children.length > 0 && timeShare(tree, call) >= unfolding.least / 2) unfolding.open.add(call);
    view.redraw();
  });
  return h("div", {}, h("div", { class: "tools" }, search, found, h("span", { class: "spring" }), main, all), view.element, details);
}

function button(name: string, pressed: () => void): HTMLElement {
  const button = h("button", { type: "button", class: "quiet" }, name);
  button.addEventListener("click", pressed);
  return button;
}

/** Everything about one call: its path, figures, parts and times. */
function describe(report: FaultPathsPage, tree: CallTree, call: Call): HTMLElement[] {
  const way = pathTo(call).flatMap((step, at): Child[] => [at > 0 ? " → " : "", h("code", {}, step.name)]);
  return [h("p", { class: "way" }, ...way), h("div", { class: "columns" }, h("div", {}, h("h3", {}, "What it consists of, without the tracer's cost"), parts(tree, call)), h("div", {}, h("h3", {}, "How long one call takes"), times(report, tree, call)))];
}

interface Part {
  name: string;
  isSelf: boolean;
  faults: number | null;
  ns: number;
  raw: number;
  variance: number;
}

/** Its calls and its own time: shares of the time and of the variance add up to its own. */
function parts(tree: CallTree, call: Call): HTMLElement {
  const own = varianceShare(tree, call) - call.children.reduce((sum, child) => sum + varianceShare(tree, child), 0);
  const self: Part = { name: `${call.name} itself`, isSelf: true, faults: null, ns: call.correctedSelf, raw: call.self, variance: own };
  const children = call.children.map((child): Part => ({ name: child.name, isSelf: false, faults: child.faults, ns: child.correctedTotal, raw: child.total, variance: varianceShare(tree, child) }));
  const order = [...children].sort((a, b) => b.ns - a.ns);
  const [shown, rest] = [order.slice(0, 9), order.slice(9)];
  const sum = (of: (part: Part) => number) => rest.reduce((all, part) => all + of(part), 0);
  const others: Part[] = rest.length > 0 ? [{ name: `${count(rest.length)} other functions`, isSelf: false, faults: null, ns: sum((p) => p.ns), raw: sum((p) => p.raw), variance: sum((p) => p.variance) }] : [];
  const all = [self, ...shown, ...others];
  const most = Math.max(...all.map((part) => part.ns), 1);
  const table = h(
    "table",
    { class: "bars parts" },
    h("caption", { class: "sr" }, `Parts of ${call.name}`),
    h("thead", {}, h("tr", {}, h("th", {}, "Function"), h("th", { class: "bar-cell" }, h("span", { class: "sr" }, "bar")), ...["Time per fault", "Time", "as traced", "Variance"].map((head) => h("th", { class: "number" }, head)))),
    h("tbody", {}, ...all.map((part) => partRow(part, call, most))),
  );  return h("div", { class: "scroll" }, table);
}

function partRow(part: Part, call: Call, most: number): HTMLElement {
  const name = part.isSelf ? h("em", {}, part.name) : part.name;
  const figures = [nanos(part.ns / Math.max(1, call.faults)), percent(part.ns / Math.max(1, call.correctedTotal)), percent(part.raw / Math.max(1, call.total)), signed(part.variance)];
  return h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "bar-cell" }, strip(part.isSelf ? "kbar k1" : "kbar k0", part.ns / most)), ...figures.map((figure, at) => h("td", { class: at === 2 ? "number faint" : "number" }, figure)));
}

/** A share that may be negative. */
export const signed = (share: number): string => (share <= -0.001 ? `−${percent(-share)}` : percent(Math.abs(share)));

function times(report: FaultPathsPage, tree: CallTree, call: Call): HTMLElement {
  const [raw, corrected] = [call.times, call.correctedTimes];
  const rows: [string, string][] = [
    ["faults that take this way", `${count(call.faults)} (${percent(call.faults / Math.max(1, tree.faults))})`],
    ["calls", `${count(call.calls)}, ${(call.calls / Math.max(1, call.faults)).toFixed(2)} per fault`],
    ["mean, corrected", within(call.correctedTotal / Math.max(1, call.calls), call.error / Math.max(1, call.calls))],
    ["mean, as traced", `${nanos(call.total / Math.max(1, call.calls))} with ${(call.callsInside / Math.max(1, call.calls)).toFixed(1)} calls inside`],
    ["median, 99 %", `${nanos(quantile(corrected, 0.5))}, ${nanos(quantile(corrected, 0.99))} corrected; ${nanos(quantile(raw, 0.5))}, ${nanos(quantile(raw, 0.99))} as traced`],
    ["share of all time", `${percent(timeShare(tree, call))} corrected, ${percent(call.total / Math.max(1, tree.total))} as traced`],
    ["share of the variance", signed(varianceShare(tree, call))],
  ];
  const span = (buckets: typeof raw) => ({ count: 1, min_ns: Math.max(buckets[0]?.[0] ?? 1, quantile(buckets, 0.5) / 50), max_ns: buckets.at(-1)?.[1] ?? 10 }) as Parameters<typeof logAxis>[0][number];
  const axis = logAxis([span(raw), span(corrected)]);
  const pane = (title: string, buckets: typeof raw, ink: string) => h("figure", {}, h("figcaption", {}, title), h("div", {}, latencyChart({ title: `${call.name}, ${title}`, axis, series: [{ name: "calls", ink, buckets }], modes: [], height: 118, unit: "calls" })));
  const isSample = report.findings.call_map.timed_faults < report.findings.faults;
  return h(
    "div",
    {},
    h("div", { class: "pair-panes" }, pane("as traced", raw, "k3"), pane("corrected", corrected, "k0")),
    isSample && h("p", { class: "faint" }, `Times of single calls are from ${count(report.findings.call_map.timed_faults)} of the faults; all sums are over every fault.`),
    h("dl", { class: "facts" }, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
  );
}
