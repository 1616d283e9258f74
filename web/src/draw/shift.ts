/** Quantile-shift plot: how far each quantile moved, with its interval. */
import type { Shift } from "../data/faultDiff";
import { h, s } from "../dom";
import { nanos, percent } from "../format";
import { linear } from "../layout/axis";
import { quantilePlace, quantileTicks, symmetric } from "../layout/shift";
import { hideTip, showTip } from "../tooltip";
import { chart, xAxis, yAxis, type Plot } from "./chart";

const HEIGHT = 210;

/** The horizontal axis stretches the tail: 0.9, 0.99 and 0.999 are as far apart as 0 and 0.9. */
export function shiftChart(title: string, shift: Shift): SVGElement {
  return chart(HEIGHT, title, (svg, width) => {
    const plot: Plot = { left: 70, right: width - 10, top: 10, bottom: HEIGHT - 24 };
    const points = shift.quantiles;
    const x = (quantile: number) => plot.left + quantilePlace(quantile) * (plot.right - plot.left);
    const scale = symmetric(points.flatMap(({ change }) => [change.low, change.high, change.value]));
    const y = (value: number) => linear([-1, 1], [plot.bottom, plot.top])(scale.place(value));
    svg.append(
      ...yAxis(plot, scale.ticks.map((tick) => ({ at: y(tick), label: signedNanos(tick) }))),
      ...xAxis(plot, quantileTicks().map((tick) => ({ at: x(tick), label: quantileLabel(tick) }))),
      s("line", { x1: plot.left, x2: plot.right, y1: y(0), y2: y(0), class: "zero" }),
    );
    const upper = points.map((p) => `${x(p.quantile).toFixed(1)} ${y(p.change.high).toFixed(1)}`);
    const lower = [...points].reverse().map((p) => `${x(p.quantile).toFixed(1)} ${y(p.change.low).toFixed(1)}`);
    if (points.length > 1) svg.append(s("path", { class: "area kfill k4 strong", d: `M${[...upper, ...lower].join("L")}Z` }), s("path", { class: "line kline k4", d: `M${points.map((p) => `${x(p.quantile).toFixed(1)} ${y(p.change.value).toFixed(1)}`).join("L")}` }));
    for (const point of points.filter((p) => p.test !== null)) svg.append(s("circle", { cx: x(point.quantile), cy: y(point.change.value), r: 4.5, class: `shift-dot ${point.test!.significant ? "sure" : ""}` }));
    for (const point of points) {
      svg.append(
        s("circle", {
          cx: x(point.quantile),
          cy: y(point.change.value),
          r: 9,
          fill: "transparent",
          pointermove: (event: PointerEvent) =>
            showTip(
              event.clientX,
              event.clientY,
              h("strong", {}, `${quantileLabel(point.quantile)} of the faults`),
              h("div", {}, `${nanos(point.ns.corrected.a)} → ${nanos(point.ns.corrected.b)}, ${signedNanos(point.change.value)}`),
              h("div", {}, `95 % interval ${signedNanos(point.change.low)} to ${signedNanos(point.change.high)}`),
              h("div", { class: "faint" }, `as traced ${nanos(point.ns.raw.a)} → ${nanos(point.ns.raw.b)}`),
              point.test && h("div", {}, point.test.significant ? `beyond chance (p = ${Number(point.test.p_adjusted.toPrecision(2))})` : "may be chance"),
            ),
          pointerleave: hideTip,
        }),
      );
    }
  }, { up: "B − A", across: "quantile of the faults" });
}

export const signedNanos = (value: number): string => (Math.abs(value) < 0.5 ? "0" : `${value > 0 ? "+" : "−"}${nanos(Math.abs(value))}`);

const quantileLabel = (quantile: number): string => (quantile === 0.5 ? "median" : percent(quantile).replace(/\.0+(?=\u00a0)/, ""));

