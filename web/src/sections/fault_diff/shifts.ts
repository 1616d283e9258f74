/** Distributions of both traces and how far each quantile moved, for whole faults and by layer. */
import type { FaultDiffPage, Shift } from "../../data/faultDiff";
import { h } from "../../dom";
import { choice } from "../../draw/choice";
import { latencyChart } from "../../draw/latency";
import { shiftChart, signedNanos } from "../../draw/shift";
import { count, nanos } from "../../format";
import { linearAxis, logAxis } from "../../layout/latency";
import type { Section } from "../section";
import { kindName, layerName, sideLegend, verdict } from "./figures";

interface Row {
  name: string;
  shift: Shift;
}

const SHOWN = 3;

export const shifts: Section<FaultDiffPage> = {
  id: "shifts",
  title: "How latencies moved",
  nav: "Latency",
  applies: (report) => report.diff.whole.a.count + report.diff.whole.b.count > 0,
  intro: () => "On the left both distributions; on the right B minus A at each quantile, from the fastest fault to the slowest, with its 95 % interval. Above zero B is slower. Filled dots are beyond chance.",
  render: (report) => {
    const state = { kind: "" as string, axis: "log" as "log" | "linear", which: "corrected" as "corrected" | "raw" };
    const place = h("div", {});
    const show = () => {
      const all = rows(report, state.kind === "" ? null : state.kind);
      const [first, rest] = [all.slice(0, SHOWN), all.slice(SHOWN)];
      const more = h("details", {}, h("summary", {}, `${count(rest.length)} more layers: ${rest.map((row) => row.name).join(", ")}`));
      more.addEventListener("toggle", () => more.childElementCount === 1 && more.append(...rest.map((row) => rowView(row, state))), { once: true });
      place.replaceChildren(...first.map((row) => rowView(row, state)), ...(rest.length > 0 ? [more] : []));
    };
    const select = h("select", { "aria-label": "Kind of faults" }, h("option", { value: "" }, "all kinds of faults"), ...report.diff.classes.map((found) => h("option", { value: found.class }, kindName(report, found.class))));
    select.addEventListener("change", () => {
      state.kind = select.value;
      show();
    });
    const axes = choice("Axis", [["log", "logarithmic"], ["linear", "linear"]], (axis) => {
      state.axis = axis as "log" | "linear";
      show();
    });
    const which = choice("Times", [["corrected", "corrected"], ["raw", "as traced"]], (value) => {
      state.which = value as "corrected" | "raw";
      show();
    });
    show();
    return h("div", {}, h("div", { class: "tools" }, select, axes, which), sideLegend(report), place);
  },
};

function rows(report: FaultDiffPage, kind: string | null): Row[] {
  const whole = kind === null ? report.diff.whole : report.diff.classes.find((found) => found.class === kind)?.whole;
  const layers = report.diff.layers.filter((layer) => layer.class === kind);
  const weight = (row: Row) => Math.abs(row.shift.mean.value) * Math.max(row.shift.a.count, row.shift.b.count);
  const byLayer = layers.map((layer) => ({ name: layerName(report, layer.layer), shift: layer.shift })).sort((a, b) => weight(b) - weight(a));
  return [...(whole ? [{ name: "whole time of a fault", shift: whole }] : []), ...byLayer];
}

function rowView({ name, shift }: Row, state: { axis: "log" | "linear"; which: "corrected" | "raw" }): HTMLElement {
  const [a, b] = state.which === "raw" ? [shift.a_raw, shift.b_raw] : [shift.a, shift.b];
  const axis = state.axis === "linear" ? linearAxis([a, b]) : logAxis([a, b]);
  const pane = (letter: string, latency: typeof a, ink: string) => latencyChart({ title: `${name}, ${letter}`, axis, series: [{ name: letter, ink, buckets: latency.buckets }], modes: latency.modes, height: 128, unit: "faults" });
  const figures: [string, number, number][] = [
    ["median", a.p50_ns, b.p50_ns],
    ["mean", a.mean_ns, b.mean_ns],
    ["99 %", a.p99_ns, b.p99_ns],
  ];
  return h(
    "div",
    { class: "layer" },
    h(
      "div",
      { class: "layer-name" },
      h("strong", {}, name),
      h("div", { class: "faint" }, `${count(a.count)} and ${count(b.count)} faults`),
      h("table", { class: "mini" }, h("thead", {}, h("tr", {}, h("th", {}), h("th", {}, "A"), h("th", {}, "B"))), h("tbody", {}, ...figures.map(([label, left, right]) => h("tr", {}, h("th", {}, label), h("td", { class: "number" }, nanos(left)), h("td", { class: "number" }, nanos(right)))))),
      h("div", { class: "faint" }, `mean ${signedNanos(shift.mean.value)} (${signedNanos(shift.mean.low)} to ${signedNanos(shift.mean.high)}) `, verdict(shift.mean_test)),
    ),
    h("figure", {}, h("div", {}, pane("A", a, "k0")), h("div", {}, pane("B", b, "k1"))),
    shift.quantiles.length > 1 ? h("figure", {}, h("figcaption", {}, "B minus A by quantile, corrected"), h("div", {}, shiftChart(`${name}: shift of quantiles`, shift))) : h("p", { class: "absent" }, a.count === 0 || b.count === 0 ? "Only one of the traces has it." : "Too few values for quantiles."),
  );
}
