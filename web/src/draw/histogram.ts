/** Stacked histogram bars on a logarithmic axis. */
import { s, h } from "../dom";
import { compact, count } from "../format";
import { linear, linearTicks, log, logTicks } from "../layout/axis";
import { stacked, type Bins } from "../layout/histogram";
import { hideTip, showTip } from "../tooltip";
import { chart, xAxis, yAxis, type Axes, type Plot } from "./chart";

export interface Look {
  title: string;
  names: string[];
  inks: string[];
  /** Base of the axis labels: 10 for times, 2 for bytes. */
  base: number;
  label: (value: number) => string;
  /** Values to mark with a line and a word. */
  marks: { value: number; word: string }[];
  axes: Axes;
}

const HEIGHT = 236;

export function histogramChart(bins: Bins, look: Look): SVGElement {
  const stacks = stacked(bins.series);
  const top = stacks.at(-1) ?? [];
  const most = Math.max(...top.map(([, to]) => to), 1);
  const [low, high] = [bins.edges[0] ?? 1, bins.edges.at(-1) ?? 2];
  return chart(HEIGHT, look.title, (svg, width) => {
    const plot: Plot = { left: 58, right: width - 8, top: 34, bottom: HEIGHT - 24 };
    const x = log([low, high], [plot.left, plot.right]);
    const y = linear([0, most], [plot.bottom, plot.top]);
    const ticks = logTicks(low, high, look.base, Math.max(2, width / 80));
    svg.append(
      ...yAxis(plot, linearTicks(0, most, 4).map((tick) => ({ at: y(tick), label: compact(tick) }))),
      ...xAxis(plot, ticks.map((tick) => ({ at: x(tick), label: look.label(tick) }))),
    );
    stacks.forEach((bars, index) =>
      bars.forEach(([from, to], bin) => {
        if (to <= from) return;
        const [left, right] = [x(bins.edges[bin]!), x(bins.edges[bin + 1]!)];
        svg.append(
          s("rect", {
            class: `fill ${look.inks[index] ?? ""}`,
            x: left,
            y: y(to),
            width: Math.max(1, right - left - 1),
            height: Math.max(y(from) - y(to), 0.8),
            pointermove: (event: PointerEvent) =>
              showTip(
                event.clientX,
                event.clientY,
                h("strong", {}, `${look.label(bins.edges[bin]!)} to ${look.label(bins.edges[bin + 1]!)}`),
                h("div", {}, `${look.names[index] ?? ""}: ${count(to - from)}`),
              ),
            pointerleave: hideTip,
          }),
        );
      }),
    );
    svg.append(...marks(look, plot, x));
  }, look.axes);
}

function marks(look: Look, plot: Plot, x: (v: number) => number): SVGElement[] {
  let free = -Infinity;
  return look.marks.flatMap(({ value, word }, index) => {
    const at = x(value);
    const room = word.length * 6.4;
    const isLast = at + room > plot.right;
    const left = isLast ? at - room - 6 : at + 5;
    const row = left < free ? 28 : 14;
    free = Math.max(free, left + room);
    return [
      s("line", { x1: at, x2: at, y1: row - 8, y2: plot.bottom, class: "mark" }),
      s("text", { x: left, y: row + (index % 1), class: "tick strong" }, word),
    ];
  });
}
