/** Latency by layer: raw and corrected histograms side by side, peaks marked. */
import type { FaultPathsPage, Latencies, LayerFindings } from "../../data/faultPaths";
import { h } from "../../dom";
import { choice } from "../../draw/choice";
import { latencyChart, type Series } from "../../draw/latency";
import { count, counted, interval, nanos, percent } from "../../format";
import { linearAxis, logAxis, type Axis } from "../../layout/latency";
import type { Section } from "../section";
import { kindLegend, kindPicker, kindsOf } from "./kinds";

/** Number of layers shown at once; further ones are folded. */
const SHOWN = 5;
const HEIGHT = 168;

interface State {
  kind: string | null;
  axis: Axis["kind"];
}

export const layers: Section<FaultPathsPage> = {
  id: "layers",
  title: "Latency by layer",
  nav: "Layers",
  applies: ({ findings }) => findings.layers.length > 0,
  intro: () => "Time per fault in each part of its work, from the whole fault inwards: as traced on the left, without the tracer's cost on the right. Bands mark the peaks with the share of the faults that belong to each. Colours are kinds of faults.",
  render: (report) => {
    const state: State = { kind: null, axis: "log" };
    const place = h("div", {});
    const legend = kindLegend(report);
    const redraw = () => {
      legend.hidden = state.kind !== null;
      place.replaceChildren(...shown(report, state));
    };
    const picker = kindPicker(report, "Kind of faults", (kind) => {
      state.kind = kind;
      redraw();
    });
    const axes = choice("Axis", [["log", "logarithmic"], ["linear", "linear"]], (axis) => {
      state.axis = axis as Axis["kind"];
      redraw();
    });
    redraw();
    return h("div", {}, h("div", { class: "tools" }, picker, axes), legend, place);
  },
};

function shown(report: FaultPathsPage, state: State): HTMLElement[] {
  const found = state.kind === null ? report.findings.layers : (report.findings.classes.find((c) => c.class === state.kind)?.layers ?? []);
  const outer = ["fault", "mm_fault", "handler"];
  const bySum = found.filter((layer) => !outer.includes(layer.layer)).sort((a, b) => b.latency.corrected.sum_ns - a.latency.corrected.sum_ns);
  const order = [...outer.flatMap((name) => found.filter((layer) => layer.layer === name)), ...bySum];
  if (order[0]?.layer === "fault" && order[1]?.layer === "mm_fault" && isSame(order[0], order[1])) order.shift();
  const [first, rest] = [order.slice(0, SHOWN), order.slice(SHOWN)];
  const rows = first.map((layer) => row(report, layer, state));
  if (rest.length === 0) return rows;
  const more = h("details", {}, h("summary", {}, `${count(rest.length)} more layers: ${rest.map((layer) => report.labels.layers[layer.layer] ?? layer.layer).join(", ")}`));
  more.addEventListener("toggle", () => more.childElementCount === 1 && more.append(...rest.map((layer) => row(report, layer, state))), { once: true });
  return [...rows, more];
}

/** If the trace begins at handle_mm_fault, both layers are the same. */
const isSame = (a: LayerFindings, b: LayerFindings): boolean => a.latency.raw.sum_ns === b.latency.raw.sum_ns && a.latency.raw.count === b.latency.raw.count;

function row(report: FaultPathsPage, layer: LayerFindings, state: State): HTMLElement {
  const name = report.labels.layers[layer.layer] ?? layer.layer;
  const { raw, bounds } = layer.latency;
  const share = raw.count / Math.max(1, report.findings.faults);
  return h(
    "div",
    { class: "layer", "data-layer": layer.layer },
    h(
      "div",
      { class: "layer-name" },
      h("strong", {}, name),
      h("div", { class: "faint" }, counted(raw.count, "fault"), state.kind === null && share < 0.9995 && ` (${percent(share)})`),
      layer.stood_for_by.length > 0 && h("div", { class: "faint" }, "here ", ...layer.stood_for_by.slice(0, 4).flatMap((f, i) => [i > 0 ? ", " : "", h("code", {}, f)])),
      h("table", { class: "mini" }, h("thead", {}, h("tr", {}, h("th", {}), h("th", {}, "traced"), h("th", {}, bounds === null ? "not corrected" : "corrected"))), h("tbody", {}, ...figures(layer.latency))),
    ),
    pane(report, layer, state, "raw", "as traced"),
    pane(report, layer, state, "corrected", "corrected"),
  );
}

function figures({ raw, corrected, bounds }: Latencies): HTMLElement[] {
  const rows: [string, "p50_ns" | "mean_ns" | "p99_ns"][] = [
    ["median", "p50_ns"],
    ["mean", "mean_ns"],
    ["99 %", "p99_ns"],
  ];
  return rows.map(([name, of]) => h("tr", {}, h("th", {}, name), h("td", { class: "number" }, nanos(raw[of])), h("td", { class: "number" }, bounds === null ? "–" : interval(corrected[of], bounds[of]))));
}

function pane(report: FaultPathsPage, layer: LayerFindings, state: State, which: "raw" | "corrected", words: string): HTMLElement {
  const latency = layer.latency[which];
  const axis = state.axis === "linear" ? linearAxis([latency]) : logAxis([layer.latency.raw, layer.latency.corrected]);
  const name = report.labels.layers[layer.layer] ?? layer.layer;
  const chart = latencyChart({ title: `${name}, ${words}`, axis, series: series(report, layer, state, which), modes: latency.modes, height: HEIGHT, unit: "faults" });
  return h("figure", { class: `layer-pane ${which}` }, h("figcaption", {}, words), h("div", {}, chart));
}

/** One series for each kind of fault, or a single one. */
function series(report: FaultPathsPage, layer: LayerFindings, state: State, which: "raw" | "corrected"): Series[] {
  const kinds = kindsOf(report);
  const wanted = report.findings.classes.filter((found) => state.kind === null || found.class === state.kind);
  return wanted.flatMap((found) => {
    const part = found.layers.find((other) => other.layer === layer.layer);
    return part ? [{ name: kinds.name(found.class), ink: kinds.ink(found.class), buckets: part.latency[which].buckets }] : [];
  });
}
