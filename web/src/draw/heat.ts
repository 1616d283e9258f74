/** The heat map's canvas: cells, and a range of time chosen by dragging. */
import { h } from "../dom";
import { axisNanos } from "../format";
import { linearTicks } from "../layout/axis";
import type { Heat } from "../layout/heat";
import { color } from "../theme";
import { hideTip, showTip } from "../tooltip";
import { surface } from "./canvas";

const LEFT = 58;
const AXIS = 22;
const HEIGHT = 300;
const WIDEST = 26;

export interface HeatView {
  element: HTMLElement;
  show: (heat: Heat) => void;
  /** Marks the cells from one to another, or none. */
  select: (range: [number, number] | null) => void;
}

/** `chosen` is told the first and last cell of a drag; `words` describes a cell. */
export function heatView(heat: Heat, chosen: (from: number, to: number) => void, words: (cell: number) => string[]): HeatView {
  const state = { heat, range: null as [number, number] | null, from: null as number | null, width: 0 };
  const cellWidth = (width: number) => Math.min(WIDEST, (width - LEFT) / state.heat.columns);
  const view = surface({ class: "heat", tabindex: 0, role: "application", "aria-label": "Samples over time. Drag to choose a range; Escape shows all." }, () => HEIGHT + AXIS, (context, width) => {
    state.width = width;
    draw(context, state.heat, state.range, cellWidth(width));
  });
  const under = (event: PointerEvent): number => {
    const box = view.canvas.getBoundingClientRect();
    const { columns, scale } = state.heat;
    const column = Math.min(columns - 1, Math.max(0, Math.floor((event.clientX - box.left - LEFT) / cellWidth(box.width))));
    const row = Math.min(scale.rows - 1, Math.max(0, Math.floor(((HEIGHT - (event.clientY - box.top)) / HEIGHT) * scale.rows)));
    return column * scale.rows + row;
  };
  view.canvas.addEventListener("pointerdown", (event) => {
    state.from = under(event);
    view.canvas.setPointerCapture(event.pointerId);
  });
  view.canvas.addEventListener("pointermove", (event) => {
    const cell = under(event);
    showTip(event.clientX, event.clientY, ...words(cell).map((line, at) => h(at === 0 ? "strong" : "div", {}, line)));
    if (state.from === null) return;
    state.range = [Math.min(state.from, cell), Math.max(state.from, cell)];
    view.redraw();
  });
  view.canvas.addEventListener("pointerup", (event) => {
    if (state.from === null) return;
    const cell = under(event);
    const [from, to] = [Math.min(state.from, cell), Math.max(state.from, cell)];
    state.from = null;
    state.range = [from, to];
    view.redraw();
    chosen(from, to);
  });
  view.canvas.addEventListener("pointerleave", hideTip);
  return {
    element: h("div", { class: "canvas-box" }, view.canvas),
    show: (next) => {
      state.heat = next;
      state.range = null;
      view.redraw();
    },
    select: (range) => {
      state.range = range;
      view.redraw();
    },
  };
}

function draw(context: CanvasRenderingContext2D, heat: Heat, range: [number, number] | null, wide: number): void {
  const { rows } = heat.scale;
  const tall = HEIGHT / rows;
  const [ink, match, ground] = [color("heat"), color("match"), color("band")];
  context.fillStyle = ground;
  context.fillRect(LEFT, 0, wide * heat.columns, HEIGHT);
  const gap = wide > 4 && tall > 3 ? 0.5 : 0;
  heat.cells.forEach((weight, cell) => {
    if (!(weight > 0)) return;
    const [column, row] = [Math.floor(cell / rows), cell % rows];
    const part = heat.matched ? heat.matched[cell]! : weight;
    context.globalAlpha = heat.matched ? 0.18 : 0.12 + 0.88 * Math.sqrt(weight / heat.most);
    context.fillStyle = ink;
    context.fillRect(LEFT + column * wide, HEIGHT - (row + 1) * tall, wide - gap, tall - gap);
    if (!heat.matched || !(part > 0)) return;
    context.globalAlpha = 0.2 + 0.8 * Math.sqrt(part / heat.most);
    context.fillStyle = match;
    context.fillRect(LEFT + column * wide, HEIGHT - (row + 1) * tall, wide - gap, tall - gap);
  });
  context.globalAlpha = 1;
  drawRange(context, heat, range, wide, tall);
  context.fillStyle = color("muted");
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const share of [0, 0.5, 1]) context.fillText(axisNanos(share * heat.scale.column * 1000), 0, HEIGHT - 6 - share * (HEIGHT - 12), LEFT - 8);
  context.textBaseline = "top";
  const seconds = (heat.columns * heat.scale.column) / 1e6;
  for (const tick of linearTicks(0, seconds, Math.max(2, (wide * heat.columns) / 110))) context.fillText(axisNanos(tick * 1e9), LEFT + (tick / seconds) * wide * heat.columns, HEIGHT + 7);
}

/** All cells of a range of time: the rest of its first column, whole columns, the start of its last. */
function drawRange(context: CanvasRenderingContext2D, heat: Heat, range: [number, number] | null, wide: number, tall: number): void {
  if (!range) return;
  const { rows } = heat.scale;
  context.strokeStyle = color("ink");
  context.lineWidth = 1.5;
  const [first, last] = range.map((cell) => Math.floor(cell / rows)) as [number, number];
  for (let column = first; column <= last; column += 1) {
    const low = column === first ? range[0] % rows : 0;
    const high = column === last ? range[1] % rows : rows - 1;
    context.strokeRect(LEFT + column * wide + 0.5, HEIGHT - (high + 1) * tall, Math.max(1, wide - 1), (high - low + 1) * tall);
  }
}
