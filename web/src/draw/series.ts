/** A line over time with a crosshair. */
import { h, s } from "../dom";
import { byteTicks, linear, linearTicks, log, logTicks } from "../layout/axis";
import { nearest, stacked, thin, type Point } from "../layout/series";
import { axisBytes, axisNanos, nanos } from "../format";
import { hideTip, showTip } from "../tooltip";
import { chart, xAxis, yAxis, type Plot } from "./chart";

export interface Line {
  name: string;
  points: Point[];
  /** Class for the colour. */
  ink: string;
}

export interface Pane {
  title: string;
  lines: Line[];
  unit: "bytes" | "number";
  label: (value: number) => string;
  end: number;
  /** Moments to mark. */
  marks?: number[];
  /** Values to mark across the whole pane. */
  levels?: { at: number; name: string }[];
  /** Lines are the tops of layers, one on top of the other. */
  isStacked?: boolean;
  /** A logarithmic axis of values; for lines that are far apart. */
  log?: boolean;
  /** Labels of the horizontal axis, if it is not in nanoseconds. */
  time?: (value: number) => string;
  /** Name of the horizontal axis, if it is not time. */
  across?: string;
}

const HEIGHT = 150;
/** Largest number of points drawn per line: two per pixel of a wide page. */
const MOST_POINTS = 2_000;

export function timePane(pane: Pane): SVGElement {
  const most = top(pane);
  return chart(HEIGHT, `${pane.title}; highest ${pane.label(most)}`, (svg, width) => {
    const plot: Plot = { left: 66, right: width - 8, top: 10, bottom: HEIGHT - 24 };
    const x = linear([0, pane.end], [plot.left, plot.right]);
    const least = pane.log === true ? floor(pane) : 0;
    const scale = pane.log === true ? log([least, most * 1.3], [plot.bottom, plot.top]) : linear([0, most * 1.06], [plot.bottom, plot.top]);
    const y = (value: number) => scale(pane.log === true ? Math.max(value, least) : value);
    const label = (tick: number) => (pane.unit === "bytes" ? axisBytes(tick) : pane.label(tick));
    svg.append(
      ...yAxis(plot, ticks(pane, least, most).map((tick) => ({ at: y(tick), label: label(tick) })).filter(isNew)),
      ...xAxis(plot, linearTicks(0, pane.end, Math.max(2, width / 130)).map((tick) => ({ at: x(tick), label: (pane.time ?? axisNanos)(tick) })).filter(isNew)),
    );
    for (const { at, name } of pane.levels ?? []) {
      if (at < least || at > most * 1.06) continue;
      svg.append(s("line", { x1: plot.left, x2: plot.right, y1: y(at), y2: y(at), class: "mark" }), s("text", { x: plot.right - 4, y: y(at) - 4, class: "tick", "text-anchor": "end" }, name));
    }
    for (const at of pane.marks ?? []) svg.append(s("line", { x1: x(at), x2: x(at), y1: plot.top, y2: plot.bottom, class: "mark change" }));
    for (const line of drawn(pane)) svg.append(...path(line, x, y, plot));
    svg.append(...crosshair(pane, svg, plot, x));
  }, { across: pane.across ?? "time since the start" });
}

/**
 * Whether a label differs from the one before: on short axes of whole numbers some would repeat.
 */
const isNew = ({ label }: { label: string }, at: number, all: { label: string }[]): boolean => label !== all[at - 1]?.label;

function ticks(pane: Pane, least: number, most: number): number[] {
  if (pane.log !== true) return pane.unit === "bytes" ? byteTicks(0, most, 4) : linearTicks(0, most, 4);
  const powers = logTicks(least, most * 1.3, 10, 5);
  // Within a decade, powers of ten are too few to read off values.
  return powers.length > 1 ? powers : linearTicks(least, most * 1.3, 3);
}

/**
 * The highest value of all lines; 1 where all are 0. Without spread syntax: there may be 10⁵
 * points.
 */
function top(pane: Pane): number {
  let most = 0;
  for (const line of drawn(pane)) for (const point of line.points) most = Math.max(most, point.y);
  return most > 0 ? most : 1;
}

/** The lowest positive value of all lines. */
function floor(pane: Pane): number {
  let least = Infinity;
  for (const line of pane.lines) for (const point of line.points) if (point.y > 0) least = Math.min(least, point.y);
  return Number.isFinite(least) ? least * 0.8 : 1;
}

/** Names of the lines with their colours, where there is more than one. */
export function legend(pane: Pane): HTMLElement | null {
  if (pane.lines.length < 2) return null;
  return h("ul", { class: "legend" }, ...pane.lines.map((line) => h("li", {}, h("span", { class: `swatch ${line.ink}` }), line.name)));
}

/** The lines where they are drawn: of layers, each with the one below it. */
const drawn = ({ lines, isStacked }: Pane): (Line & { below?: Point[] })[] =>
  isStacked !== true ? lines : stacked(lines.map(({ points }) => points)).map((points, at, all) => ({ ...lines[at]!, points, below: all[at - 1] ?? [] }));

function path(line: Line & { below?: Point[] }, x: (v: number) => number, y: (v: number) => number, plot: Plot): SVGElement[] {
  const points = thin(line.points, MOST_POINTS);
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last) return [];
  const through = (points: Point[]) => points.map((p, i) => `${i === 0 ? "" : "L"}${x(p.x).toFixed(1)} ${y(p.y).toFixed(1)}`).join("");
  const d = `M${through(points)}`;
  const below = thin(line.below ?? [], MOST_POINTS).reverse();
  const bottom = below.length > 0 ? through(below) : `${x(last.x).toFixed(1)} ${plot.bottom}L${x(first.x).toFixed(1)} ${plot.bottom}`;
  return [s("path", { d: `${d}L${bottom}Z`, class: `area kfill ${line.ink}${line.below ? " layer" : ""}` }), s("path", { d, class: `line kline ${line.ink}` })];
}

function crosshair(pane: Pane, svg: SVGElement, plot: Plot, x: (v: number) => number): SVGElement[] {
  const rule = s("line", { y1: plot.top, y2: plot.bottom, class: "crosshair", visibility: "hidden" });
  const catcher = s("rect", {
    x: plot.left,
    y: 0,
    width: Math.max(0, plot.right - plot.left),
    height: plot.bottom,
    fill: "transparent",
    pointermove: (event: PointerEvent) => {
      const box = svg.getBoundingClientRect();
      const time = ((event.clientX - box.left - plot.left) / (plot.right - plot.left)) * pane.end;
      const at = nearest(pane.lines[0]?.points ?? [], time);
      const point = pane.lines[0]?.points[at];
      if (!point) return;
      rule.setAttribute("x1", String(x(point.x)));
      rule.setAttribute("x2", String(x(point.x)));
      rule.setAttribute("visibility", "visible");
      const values = pane.lines.map((line) => {
        const value = line.points[nearest(line.points, point.x)];
        return h("div", {}, `${line.name}: ${value ? pane.label(value.y) : "–"}`);
      });
      showTip(event.clientX, event.clientY, h("strong", {}, (pane.time ?? nanos)(point.x)), ...values);
    },
    pointerleave: () => {
      rule.setAttribute("visibility", "hidden");
      hideTip();
    },
  });
  return [rule, catcher];
}
