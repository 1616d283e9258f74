/** A latency distribution as bars with its modes marked, on a logarithmic or a linear axis. */
import type { Bucket, Mode } from "../data/faultPaths";
import { h, s } from "../dom";
import { axisNanos, count, nanos, percent } from "../format";
import { linearTicks, logTicks } from "../layout/axis";
import { bars, place, valueAt, type Axis } from "../layout/latency";
import { hideTip, showTip } from "../tooltip";
import { chart, xAxis, yAxis, type Plot } from "./chart";

export interface Series {
  name: string;
  /** Class for the colour, k0 to k8. */
  ink: string;
  buckets: Bucket[];
}

export interface LatencyLook {
  title: string;
  axis: Axis;
  /** Stacked, the first at the bottom. */
  series: Series[];
  modes: Mode[];
  height: number;
  /** What is counted: faults, calls. */
  unit: string;
}

/** Modes that have room for their words. */
const MOST_LABELS = 4;
const ROW = 14;
/** Charts lower than this are in tables, whose heads name their axes. */
const LEAST_NAMED = 100;

export function latencyChart(look: LatencyLook): SVGElement {
  const all = look.series.reduce((sum, series) => sum + series.buckets.reduce((s, [, , n]) => s + n, 0), 0);
  const drawn = look.series.map((series) => bars(series.buckets, look.axis));
  const tops = Array.from({ length: look.axis.bins }, (_, bin) => drawn.reduce((sum, { counts }) => sum + counts[bin]!, 0));
  const most = Math.max(...tops, 1e-9);
  const beyond = drawn.reduce((sum, { above }) => sum + above, 0);
  const marked = [...look.modes].sort((a, b) => b.share - a.share).slice(0, MOST_LABELS).sort((a, b) => a.peak_ns - b.peak_ns);
  return chart(look.height, look.title, (svg, width) => {
    const plot: Plot = { left: 46, right: width - 10, top: 8 + ROW * 2, bottom: look.height - 22 };
    const x = (value: number) => plot.left + place(look.axis, value) * (plot.right - plot.left);
    const y = (n: number) => plot.bottom - (n / most) * (plot.bottom - plot.top);
    const ticks = look.axis.kind === "log" ? logTicks(look.axis.low, look.axis.high, 10, width / 70) : linearTicks(0, look.axis.high, Math.max(2, width / 90));
    // A low chart has no room for three labels above each other.
    const rows = Math.min(3, Math.max(1, Math.floor((plot.bottom - plot.top) / 24)));
    const shares = linearTicks(0, most / Math.max(all, 1e-9), rows).map((share) => ({ at: y(share * all), label: shareLabel(share) }));
    svg.append(...yAxis(plot, shares), ...xAxis(plot, ticks.map((tick) => ({ at: x(tick), label: axisNanos(tick) }))));
    svg.append(...modeBands(marked, look.axis, plot, x));
    const floors = new Array<number>(look.axis.bins).fill(0);
    drawn.forEach(({ counts }, index) =>
      counts.forEach((n, bin) => {
        if (n <= 0) return;
        const [left, right] = [x(valueAt(look.axis, bin / look.axis.bins)), x(valueAt(look.axis, (bin + 1) / look.axis.bins))];
        const top = y(floors[bin]! + n);
        const bottom = y(floors[bin]!);
        floors[bin]! += n;
        const tall = Math.max(bottom - top, 0.7);
        svg.append(s("rect", { class: `kfill ${look.series[index]?.ink ?? ""}`, x: left, y: bottom - tall, width: Math.max(0.8, right - left - 0.6), height: tall }));
      }),
    );
    if (beyond >= 0.5) svg.append(s("text", { x: plot.right, y: plot.bottom - 6, class: "tick", "text-anchor": "end" }, `${count(beyond)} slower →`));
    svg.append(catcher(svg, look, plot, all, drawn.map(({ counts }) => counts)));
  }, look.height < LEAST_NAMED ? null : { up: `share of ${look.unit}`, across: look.axis.kind === "log" ? "time, logarithmic" : "time" });
}

const shareLabel = (share: number): string => `${Number((share * 100).toPrecision(2))}\u00a0%`;

function modeBands(modes: Mode[], axis: Axis, plot: Plot, x: (value: number) => number): SVGElement[] {
  const ends = [-Infinity, -Infinity];
  return modes.flatMap((mode) => {
    const [from, to] = [x(mode.low_ns), x(mode.high_ns)].map((at) => Math.min(Math.max(at, plot.left), plot.right)) as [number, number];
    if (place(axis, mode.peak_ns) > 1) return [];
    const word = `${nanos(mode.peak_ns)} · ${percent(mode.share)}`;
    const room = word.length * 6.3;
    const left = Math.min(Math.max((from + to) / 2 - room / 2, plot.left), plot.right - room);
    const row = ends.findIndex((end) => left > end + 8);
    const band = s("rect", { class: "mode-band", x: from, y: plot.top, width: Math.max(1.5, to - from), height: plot.bottom - plot.top });
    if (row < 0) return [band];
    ends[row] = left + room;
    const base = plot.top - 6 - row * ROW;
    const rule = s("path", { class: "mode-rule", d: `M${from.toFixed(1)} ${base + 3}H${Math.max(to, from + 2).toFixed(1)}` });
    return [band, rule, s("text", { x: left, y: base - 1, class: "tick strong" }, word)];
  });
}

function catcher(svg: SVGElement, look: LatencyLook, plot: Plot, all: number, counts: number[][]): SVGElement {
  return s("rect", {
    x: plot.left,
    y: plot.top,
    width: Math.max(0, plot.right - plot.left),
    height: plot.bottom - plot.top,
    fill: "transparent",
    pointermove: (event: PointerEvent) => {
      const { left } = svg.getBoundingClientRect();
      const bin = Math.floor(((event.clientX - left - plot.left) / (plot.right - plot.left)) * look.axis.bins);
      const inside = counts.map((series) => series[bin] ?? 0);
      const sum = inside.reduce((a, b) => a + b, 0);
      const edges = [bin, bin + 1].map((edge) => nanos(valueAt(look.axis, edge / look.axis.bins)));
      const parts = look.series.flatMap((series, index) => (inside[index]! >= 0.5 && look.series.length > 1 ? [h("div", {}, `${series.name}: ${count(inside[index]!)}`)] : []));
      showTip(event.clientX, event.clientY, h("strong", {}, edges.join(" to ")), h("div", {}, `${count(sum)} ${look.unit}, ${percent(all > 0 ? sum / all : 0)}`), ...parts);
    },
    pointerleave: hideTip,
  });
}
