/** Frames of SVG charts: grid, axis labels, plot area. */
import { s } from "../dom";
import { whenSized } from "./canvas";

export interface Tick {
  at: number;
  label: string;
}

export interface Plot {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** Lines and labels of a horizontal axis. Labels that would touch are left out. */
export function xAxis(plot: Plot, ticks: Tick[]): SVGElement[] {
  let free = -Infinity;
  return ticks.flatMap(({ at, label }) => {
    const line = s("line", { x1: at, x2: at, y1: plot.top, y2: plot.bottom, class: "grid" });
    const half = label.length * 3.4;
    const x = Math.min(Math.max(at, half), plot.right + 8 - half);
    if (x - half < free) return [line];
    free = x + half + 10;
    return [line, s("text", { x, y: plot.bottom + 16, class: "tick", "text-anchor": "middle" }, label)];
  });
}

export function yAxis(plot: Plot, ticks: Tick[]): SVGElement[] {
  return ticks.flatMap(({ at, label }) => [
    s("line", { x1: plot.left, x2: plot.right, y1: at, y2: at, class: "grid" }),
    s("text", { x: plot.left - 8, y: at + 4, class: "tick", "text-anchor": "end" }, label),
  ]);
}

/** What the axes are; the caption above a chart may already name the vertical one. */
export interface Axes {
  up?: string;
  across: string;
}

/** Height of the line that names the axes. */
const NAMES = 16;

/** An SVG that is redrawn for each width; `title` is the text for screen readers. */
export function chart(plotHeight: number, title: string, draw: (svg: SVGElement, width: number) => void, axes: Axes | null = null): SVGElement {
  const height = plotHeight + (axes ? NAMES : 0);
  const svg = s("svg", { role: "img", "aria-label": title, class: "chart" });
  whenSized(svg, (width) => {
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", String(height));
    draw(svg, width);
    if (axes) svg.append(s("text", { x: width - 8, y: height - 4, class: "tick", "text-anchor": "end" }, `${axes.up === undefined ? "" : `↑ ${axes.up}   `}→ ${axes.across}`));
  });
  return svg;
}
