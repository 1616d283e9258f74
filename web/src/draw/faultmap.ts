/** The fault map's canvas. */
import type { FaultMap } from "../data/types";
import { h } from "../dom";
import { axisNanos, bytes, count, nanos, percent } from "../format";
import { linear, linearTicks } from "../layout/axis";
import { layoutMap, strength } from "../layout/faultmap";
import { color } from "../theme";
import { hideTip, showTip } from "../tooltip";
import { surface } from "./canvas";

/** Width of the column of labels, on wide and narrow screens, pixels. */
const LABELS = 112;
const NARROW_LABELS = 74;
/** Height that a label needs to itself, pixels. */
const LABEL_HEIGHT = 14;
const AXIS = 24;
/** Height that the rows should take together, pixels. */
const WANTED = 340;

export type Colouring = "faults" | "churn";

export function faultMapView(
  map: FaultMap,
  regionName: (region: string) => string,
): { element: HTMLElement; colour: (by: Colouring) => void } {
  const layout = layoutMap(map, WANTED);
  const byPlace = new Map(map.cells.map((cell) => [cell.row * map.columns + cell.column, cell]));
  let by: Colouring = "faults";
  const labels = (width: number) => (width < 560 ? NARROW_LABELS : LABELS);
  const view = surface(
    { class: "map", role: "img", "aria-label": "Faults by address and time; stronger cells have more faults." },
    () => layout.height + AXIS,
    (context, width) => {
      const left = labels(width);
      const cellWidth = (width - left) / map.columns;
      // Cells are told apart where there is room, and flow together where there is none.
      const gap = Math.min(cellWidth, layout.rowHeight) >= 3 ? 0.5 : 0;
      drawBands(context, left, width);
      for (const cell of map.cells) {
        const top = layout.tops[cell.row];
        if (top === undefined) continue;
        context.globalAlpha = by === "faults" ? strength(cell.faults, layout.most) : 1;
        context.fillStyle = by === "faults" ? color("heat") : color(cell.churn > 0.5 ? "churn" : "needed");
        context.fillRect(left + cell.column * cellWidth, top, cellWidth - gap, layout.rowHeight - gap);
      }
      context.globalAlpha = 1;
      drawAxis(context, left, width);
    },
  );

  function drawBands(context: CanvasRenderingContext2D, left: number, width: number): void {
    context.font = "12px system-ui, sans-serif";
    let free = -Infinity;
    for (const band of [...layout.bands].reverse()) {
      context.fillStyle = color("band");
      context.fillRect(left, band.top, width - left, band.height);
      context.fillStyle = color("muted");
      context.textBaseline = "middle";
      const middle = band.top + Math.min(band.height / 2, 10);
      if (middle - LABEL_HEIGHT / 2 < free) continue;
      context.fillText(regionName(band.region), 0, middle, left - 6);
      free = middle + LABEL_HEIGHT / 2;
    }
  }

  function drawAxis(context: CanvasRenderingContext2D, left: number, width: number): void {
    const end = map.columns * map.time_step;
    const scale = linear([0, end], [left, width]);
    context.fillStyle = color("muted");
    context.textBaseline = "top";
    for (const tick of linearTicks(0, end, Math.max(2, (width - left) / 120))) {
      const text = axisNanos(tick);
      const half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(Math.max(scale(tick) - half, left), width - 2 * half), layout.height + 8);
    }
  }

  view.canvas.addEventListener("pointermove", (event) => {
    const box = view.canvas.getBoundingClientRect();
    const left = labels(box.width);
    const column = Math.floor(((event.clientX - box.left - left) / (box.width - left)) * map.columns);
    const y = event.clientY - box.top;
    const row = layout.tops.findIndex((top) => y >= top && y < top + layout.rowHeight);
    const stretch = map.rows[row];
    if (!stretch || column < 0 || column >= map.columns) return hideTip();
    const cell = byPlace.get(row * map.columns + column);
    const faults = cell ? `${count(cell.faults)} faults, ${percent(cell.churn)} avoidable` : "no faults";
    showTip(
      event.clientX,
      event.clientY,
      h("strong", {}, faults),
      h("div", {}, `${regionName(stretch.region)}, ${bytes(stretch.length)} from ${stretch.start}`),
      h("div", { class: "faint" }, `at ${nanos(column * map.time_step)}`),
    );
  });
  view.canvas.addEventListener("pointerleave", hideTip);
  return {
    element: h("div", { class: "canvas-box" }, view.canvas),
    colour: (colouring) => {
      by = colouring;
      view.redraw();
    },
  };
}
