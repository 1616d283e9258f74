/** Scatter plot: two figures of each thing, on logarithmic scales. */
import type { Scatter, Spot } from "../data/sheets";
import { h, s } from "../dom";
import { logarithmic } from "../layout/scatter";
import { hideTip, showTip } from "../tooltip";
import { chart, xAxis, yAxis, type Plot } from "./chart";

const HEIGHT = 260;

export function scatterPlot({ title, across, up, points }: Scatter): HTMLElement {
  const drawn = chart(HEIGHT, title, (svg, width) => {
    const plot: Plot = { left: 84, right: width - 24, top: 14, bottom: HEIGHT - 24 };
    const x = logarithmic(points.map((point) => point.x), [plot.left + 8, plot.right - 8]);
    const y = logarithmic(points.map((point) => point.y), [plot.bottom - 8, plot.top + 8]);
    svg.append(...yAxis(plot, y.ticks), ...xAxis(plot, x.ticks));
    for (const point of points) svg.append(...spot(point, x.place(point.x[0]), y.place(point.y[0]), width));
  }, { up, across });
  return h("figure", {}, h("figcaption", {}, title), drawn);
}

/** A dot with its tip; those that no other beats are filled and have their name beside them. */
function spot({ name, x, y, is_best }: Spot, cx: number, cy: number, width: number): SVGElement[] {
  const isLeft = cx < width / 2;
  const label = is_best ? [s("text", { x: cx + (isLeft ? 9 : -9), y: cy + 4, class: "tick", "text-anchor": isLeft ? "start" : "end" }, name)] : [];
  const tip = (event: PointerEvent) => showTip(event.clientX, event.clientY, h("strong", {}, name), h("div", {}, `${x[1]}, ${y[1]}`));
  return [
    ...label,
    s("circle", { cx, cy, r: 4.5, class: `spot ${is_best ? "best" : ""}` }),
    s("circle", { cx, cy, r: 9, fill: "transparent", pointermove: tip, pointerleave: hideTip }),
  ];
}
