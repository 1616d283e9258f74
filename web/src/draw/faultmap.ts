/** The fault map's canvas. */
import type { FaultMap } from "../data/types";
import { h } from "../dom";
import { axisNanos, bytes, count, nanos, percent } from "../format";
import { linear, linearTicks } from "../layout/axis";
import { labels, layoutMap, strength, type MapLayout } from "../layout/faultmap";
import { color } from "../theme";
import { hideTip, showTip } from "../tooltip";
import { surface } from "./canvas";

/** Width of the column of labels, on wide and narrow screens, pixels. */
const LABELS = 112;
const NARROW_LABELS = 74;
const AXIS = 24;
/** Height that the rows should take together, pixels. */
const WANTED = 340;

export type Colouring = "faults" | "churn";

/** The data for drawing and pointing. */
interface State {
  map: FaultMap;
  /** End of the axis, nanoseconds. */
  end: number;
  layout: MapLayout;
  name: (region: string) => string;
  by: Colouring;
}

export function faultMapView(
  map: FaultMap,
  end: number,
  regionName: (region: string) => string,
): { element: HTMLElement; colour: (by: Colouring) => void } {
  const state: State = { map, end, layout: layoutMap(map, WANTED), name: regionName, by: "faults" };
  const view = surface(
    { class: "map", role: "img", "aria-label": "Faults by address and time; stronger cells have more faults." },
    () => state.layout.height + AXIS,
    (context, width) => {
      const left = labelWidth(width);
      context.font = "12px system-ui, sans-serif";
      drawBands(context, state, left, width);
      drawCells(context, state, left, width);
      drawAxis(context, state, left, width);
    },
  );
  followPointer(view.canvas, state);
  return {
    element: h("div", { class: "canvas-box" }, view.canvas),
    colour: (by) => {
      state.by = by;
      view.redraw();
    },
  };
}

const labelWidth = (width: number): number => (width < 560 ? NARROW_LABELS : LABELS);

function drawBands(context: CanvasRenderingContext2D, { layout, name }: State, left: number, width: number): void {
  context.fillStyle = color("band");
  for (const band of layout.bands) context.fillRect(left, band.top, width - left, band.height);
  context.fillStyle = color("muted");
  context.textBaseline = "middle";
  for (const { region, middle } of labels(layout.bands)) context.fillText(name(region), 0, middle, left - 6);
}

const cellWidthOf = ({ map, end }: State, room: number): number => (end > 0 ? (room * map.time_step) / end : room / Math.max(1, map.columns));

function drawCells(context: CanvasRenderingContext2D, state: State, left: number, width: number): void {
  const { map, layout, by } = state;
  const cellWidth = cellWidthOf(state, width - left);
  // Cells are separated where there is room, and merge where there is none.
  const gap = Math.min(cellWidth, layout.rowHeight) >= 3 ? 0.5 : 0;
  const inks = { heat: color("heat"), churn: color("churn"), needed: color("needed") };
  for (const cell of map.cells) {
    const top = layout.tops[cell.row];
    if (top === undefined) continue;
    context.globalAlpha = by === "faults" ? strength(cell.faults, layout.most) : 1;
    context.fillStyle = by === "faults" ? inks.heat : cell.churn > 0.5 ? inks.churn : inks.needed;
    context.fillRect(left + cell.column * cellWidth, top, cellWidth - gap, layout.rowHeight - gap);
  }
  context.globalAlpha = 1;
}

function drawAxis(context: CanvasRenderingContext2D, { end, layout }: State, left: number, width: number): void {
  const scale = linear([0, end], [left, width]);
  context.fillStyle = color("muted");
  context.textBaseline = "top";
  for (const tick of linearTicks(0, end, Math.max(2, (width - left) / 120))) {
    const text = axisNanos(tick);
    const half = context.measureText(text).width / 2;
    context.fillText(text, Math.min(Math.max(scale(tick) - half, left), width - 2 * half), layout.height + 8);
  }
}

function followPointer(canvas: HTMLCanvasElement, state: State): void {
  const { map, layout } = state;
  const byPlace = new Map(map.cells.map((cell) => [cell.row * map.columns + cell.column, cell]));
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const left = labelWidth(box.width);
    const column = Math.floor((event.clientX - box.left - left) / cellWidthOf(state, box.width - left));
    const y = event.clientY - box.top;
    const row = layout.tops.findIndex((top) => y >= top && y < top + layout.rowHeight);
    if (!map.rows[row] || column < 0 || column >= map.columns) return hideTip();
    showTip(event.clientX, event.clientY, ...tip(state, row, column, byPlace.get(row * map.columns + column)));
  });
  canvas.addEventListener("pointerleave", hideTip);
}

function tip({ map, name }: State, row: number, column: number, cell: FaultMap["cells"][number] | undefined): Node[] {
  const stretch = map.rows[row]!;
  const faults = cell ? `${count(cell.faults)} faults, ${percent(cell.churn)} avoidable` : "no faults";
  return [
    h("strong", {}, faults),
    h("div", {}, `${name(stretch.region)}, ${bytes(stretch.length)} from ${stretch.start}`),
    h("div", { class: "faint" }, `at ${nanos(column * map.time_step)}`),
  ];
}
