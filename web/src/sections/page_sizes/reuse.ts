/** Misses by TLB size, with the reach of real TLBs. */
import type { HugeSimulation, ReuseCurve } from "../../data/schema";
import { h, s } from "../../dom";
import { chart, xAxis, yAxis, type Plot } from "../../draw/chart";
import { axisBytes, bytes, percent } from "../../format";
import { linear, linearTicks, log } from "../../layout/axis";
import type { Section } from "../section";

export const reuse: Section<HugeSimulation> = {
  id: "reuse",
  title: "Misses by size of the TLB",
  nav: "Reuse",
  applies: (simulation) => simulation.reuse.length > 0,
  intro: () =>
    "Share of accesses that a fully associative LRU TLB of each size would miss, from one pass over a sample of pages. Dashed lines mark the entries of real processors' last levels for that page size, and how much memory they reach; sets, first levels and sharing between page sizes are left out here.",
  render: (simulation) => h("div", {}, ...simulation.reuse.map((curve) => figure(curve, simulation.reaches))),
};

const HEIGHT = 180;
/** Height of a line of names above the plot. */
const LINE = 15;
/** Approximate width of a letter of a label, pixels. */
const LETTER = 6.4;

function figure(curve: ReuseCurve, reaches: HugeSimulation["reaches"]): HTMLElement {
  const first = curve.points[0]?.[0] ?? 1;
  const last = curve.points.at(-1)?.[0] ?? 2;
  const marks = new Map<number, string[]>();
  for (const reach of reaches) {
    if (reach.page_bytes !== curve.page_bytes || reach.entries > last) continue;
    marks.set(reach.entries, [...(marks.get(reach.entries) ?? []), reach.machine.replace(/ \(.*\)$/, "")]);
  }
  const head = marks.size * LINE;
  const svg = chart(HEIGHT + head, `Misses of ${curve.workload} by TLB entries, pages of ${bytes(curve.page_bytes)}`, (svg, width) => {
    const plot: Plot = { left: 66, right: width - 8, top: 10 + head, bottom: HEIGHT + head - 24 };
    const most = Math.max(...curve.points.map(([, misses]) => misses), 1e-6);
    const x = log([Math.max(1, first), Math.max(2, last)], [plot.left, plot.right]);
    const y = linear([0, most * 1.06], [plot.bottom, plot.top]);
    const sizes = Array.from({ length: 13 }, (_, power) => 2 ** power).filter((size) => size >= first && size <= last);
    svg.append(
      ...yAxis(plot, linearTicks(0, most, 4).map((tick) => ({ at: y(tick), label: percent(tick) }))),
      ...xAxis(plot, sizes.map((size) => ({ at: x(size), label: String(size) }))),
    );
    const d = curve.points.map(([size, misses], at) => `${at === 0 ? "M" : "L"}${x(size).toFixed(1)} ${y(misses).toFixed(1)}`).join("");
    svg.append(s("path", { d, class: "line kline needed" }));
    [...marks].sort(([a], [b]) => a - b).forEach(([entries, machines], row) => {
      const at = x(entries);
      const words = `${machines.join(", ")}: ${entries} entries, ${axisBytes(entries * curve.page_bytes)}`;
      const room = words.length * LETTER;
      const isRight = at + 5 + room > width;
      const line = LINE * (row + 1) - 4;
      svg.append(
        s("line", { x1: at, x2: at, y1: line - 8, y2: plot.bottom, class: "mark" }),
        s("text", { x: isRight ? Math.max(at - 5, room) : at + 5, y: line, class: "tick over", "text-anchor": isRight ? "end" : "start" }, words),
      );
    });
  }, { up: "accesses that miss", across: "TLB entries, logarithmic" });
  const sample = curve.sampled < 1 ? `one page in ${Math.round(1 / curve.sampled)} followed, ± ${percent(curve.error)}` : "every page followed";
  return h("figure", {}, h("figcaption", {}, `${curve.workload}, pages of ${bytes(curve.page_bytes)} (${sample})`), h("div", {}, svg));
}
