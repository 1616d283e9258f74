/** The heat map's canvas: cells, and ranges of time chosen by dragging or by keys. */
import { h } from "../dom";
import { axisNanos } from "../format";
import { linearTicks } from "../layout/axis";
import type { Heat } from "../layout/heat";
import { color, onTheme } from "../theme";
import { hideTip, showTip } from "../tooltip";
import { surface } from "./canvas";

/** Room for labels left of the cells; lanes under the map use the same. */
export const LEFT = 58;
const AXIS = 22;
const WIDEST = 72;

export type Cells = [from: number, to: number];

export interface HeatView {
  element: HTMLElement;
  show: (heat: Heat) => void;
  /** Marks the chosen cells, and those with which they are compared. */
  select: (chosen: Cells | null, base: Cells | null) => void;
}

export interface HeatEvents {
  /** Cells were chosen; with `second`, those to compare with. */
  chosen: (cells: Cells | null, second: boolean) => void;
  words: (cell: number) => string[];
  /** The column share under the pointer, for lanes under the map. */
  hover?: (column: number | null) => void;
}

export const columnWidth = (heat: Heat, width: number): number => Math.min(WIDEST, (width - LEFT) / heat.columns);
const heightOf = (heat: Heat): number => Math.max(200, Math.min(400, heat.scale.rows * 6));

export function heatView(first: Heat, label: string, events: HeatEvents): HeatView {
  const state = { heat: first, chosen: null as Cells | null, base: null as Cells | null, from: null as number | null, anchor: 0, picture: null as HTMLCanvasElement | null };
  const name = `${label}. Drag to choose a range, with Shift the range to compare with. Arrow keys move, Shift extends, Escape shows all.`;
  const view = surface({ class: "heat", tabindex: 0, role: "application", "aria-label": name }, () => heightOf(state.heat) + AXIS, (context, width) => {
    state.picture ??= picture(state.heat);
    draw(context, state.heat, state.picture, columnWidth(state.heat, width));
    drawRange(context, state.heat, state.base, columnWidth(state.heat, width), color("needed"), [5, 3]);
    drawRange(context, state.heat, state.chosen, columnWidth(state.heat, width), color("ink"), []);
  });
  onTheme(() => (state.picture = null));
  const pick = (cells: Cells | null, second: boolean) => {
    if (second) state.base = cells;
    else state.chosen = cells;
    view.redraw();
  };
  const under = (event: PointerEvent): number => {
    const box = view.canvas.getBoundingClientRect();
    const { columns, scale } = state.heat;
    const tall = heightOf(state.heat);
    const column = Math.min(columns - 1, Math.max(0, Math.floor((event.clientX - box.left - LEFT) / columnWidth(state.heat, box.width))));
    const row = Math.min(scale.rows - 1, Math.max(0, Math.floor(((tall - (event.clientY - box.top)) / tall) * scale.rows)));
    return column * scale.rows + row;
  };
  const span = (a: number, b: number): Cells => [Math.min(a, b), Math.max(a, b)];
  view.canvas.addEventListener("pointerdown", (event) => {
    state.from = state.anchor = under(event);
    view.canvas.setPointerCapture(event.pointerId);
  });
  view.canvas.addEventListener("pointermove", (event) => {
    const cell = under(event);
    showTip(event.clientX, event.clientY, ...events.words(cell).map((line, at) => h(at === 0 ? "strong" : "div", {}, line)));
    events.hover?.(cell / state.heat.scale.rows);
    if (state.from !== null) pick(span(state.from, cell), event.shiftKey);
  });
  view.canvas.addEventListener("pointerup", (event) => {
    if (state.from === null) return;
    const cells = span(state.from, under(event));
    state.from = null;
    pick(cells, event.shiftKey);
    events.chosen(cells, event.shiftKey);
  });
  view.canvas.addEventListener("pointerleave", () => {
    hideTip();
    events.hover?.(null);
  });
  view.canvas.addEventListener("keydown", (event) => {
    const { rows } = state.heat.scale;
    const by = { ArrowLeft: -rows, ArrowRight: rows, ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (event.key === "Escape") events.chosen(null, false);
    else if (by !== undefined) {
      const [low, high] = state.chosen ?? [-1, -1];
      const end = state.anchor === low ? high : low;
      const first = state.heat.cells.findIndex((weight) => weight > 0);
      const cell = low < 0 ? Math.max(0, first) : Math.max(0, Math.min(state.heat.cells.length - 1, end + by));
      if (!event.shiftKey || low < 0) state.anchor = cell;
      pick(span(state.anchor, cell), false);
      events.chosen(span(state.anchor, cell), false);
    } else return;
    event.preventDefault();
  });
  return {
    element: h("div", { class: "canvas-box" }, view.canvas),
    show: (next) => {
      Object.assign(state, { heat: next, picture: null });
      view.redraw();
    },
    select: (chosen, base) => {
      Object.assign(state, { chosen, base });
      view.redraw();
    },
  };
}

/** One pixel per cell, stretched later. */
function picture(heat: Heat): HTMLCanvasElement {
  const { rows } = heat.scale;
  const canvas = h("canvas", { width: heat.columns, height: rows });
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(heat.columns, rows);
  const ramp = ["heat-0", "heat-1", "heat-2", "heat-3"].map((name) => rgb(color(name)));
  const match = rgb(color("match"));
  const { pale, strong } = heat;
  heat.cells.forEach((weight, cell) => {
    if (!(weight > 0)) return;
    const at = ((rows - 1 - (cell % rows)) * heat.columns + Math.floor(cell / rows)) * 4;
    const part = heat.matched?.[cell] ?? 0;
    const ink = part > 0 ? match : along(ramp, Math.max(0, Math.min(1, (weight - pale) / (strong - pale))));
    image.data.set(ink, at);
    image.data[at + 3] = part > 0 ? 60 + 195 * Math.min(1, part / weight) : heat.matched ? 60 : 255;
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

/** What the colours stand for. */
export function heatKey({ pale, strong, matched }: Heat, words: (weight: number) => string, per: string): HTMLElement {
  return h(
    "div",
    { class: "heat-key faint" },
    `${per}: ${pale > 0 ? `${words(pale)} or less` : "0"} `,
    h("span", { class: "heat-ramp", role: "img", "aria-label": "from pale to strong" }),
    ` ${words(strong)} or more`,
    matched && h("span", {}, h("span", { class: "swatch match" }), "matches the search"),
  );
}

/** A colour between those of a ramp. */
function along(ramp: number[][], share: number): number[] {
  const place = share * (ramp.length - 1);
  const step = Math.min(ramp.length - 2, Math.floor(place));
  return ramp[step]!.map((from, channel) => from + (ramp[step + 1]![channel]! - from) * (place - step));
}

/** Channels of a colour such as #9a3412. */
const rgb = (hex: string): number[] => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));

function draw(context: CanvasRenderingContext2D, heat: Heat, cells: HTMLCanvasElement, wide: number): void {
  const tall = heightOf(heat);
  const { rows, column } = heat.scale;
  context.fillStyle = color("band");
  context.fillRect(LEFT, 0, wide * heat.columns, tall);
  context.imageSmoothingEnabled = false;
  context.drawImage(cells, LEFT, 0, wide * heat.columns, tall);
  context.fillStyle = color("card");
  if (wide > 4) for (let at = 1; at < heat.columns; at += 1) context.fillRect(LEFT + at * wide - 0.5, 0, 0.5, tall);
  if (wide > 4 && tall / rows > 3) for (let at = 1; at < rows; at += 1) context.fillRect(LEFT, (at * tall) / rows - 0.5, wide * heat.columns, 0.5);
  context.fillStyle = color("muted");
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const share of [0, 0.5, 1]) context.fillText(axisNanos(share * column), LEFT - 8, tall - 7 - share * (tall - 14), LEFT - 8);
  context.textAlign = "left";
  context.textBaseline = "top";
  const seconds = (heat.columns * column) / 1e9;
  for (const tick of linearTicks(0, seconds, Math.max(2, (wide * heat.columns) / 110))) {
    const x = LEFT + (tick / seconds) * wide * heat.columns;
    context.fillRect(x, tall, 1, 4);
    const label = axisNanos(tick * 1e9);
    context.fillText(label, Math.min(x, context.canvas.clientWidth - context.measureText(label).width), tall + 7);
  }
}

/**
 * All cells of a time range: the rest of its first column, whole columns, and the start of its last
 * one.
 */
function drawRange(context: CanvasRenderingContext2D, heat: Heat, range: Cells | null, wide: number, ink: string, dash: number[]): void {
  if (!range) return;
  const { rows } = heat.scale;
  const all = heightOf(heat);
  const tall = all / rows;
  const [first, last] = range.map((cell) => Math.floor(cell / rows)) as Cells;
  const [low, high] = [range[0] % rows, (range[1] % rows) + 1];
  const x = (column: number) => LEFT + column * wide;
  const y = (row: number) => all - row * tall;
  context.strokeStyle = ink;
  context.lineWidth = 2;
  context.setLineDash(dash);
  context.beginPath();
  if (first === last) context.rect(x(first), y(high), wide, (high - low) * tall);
  else {
    const corners: [number, number][] = [
      [x(first), y(low)], [x(first + 1), y(low)], [x(first + 1), all], [x(last + 1), all],
      [x(last + 1), y(high)], [x(last), y(high)], [x(last), 0], [x(first), 0],
    ];
    corners.forEach(([a, b], at) => (at === 0 ? context.moveTo(a, b) : context.lineTo(a, b)));
    context.closePath();
  }
  context.stroke();
  context.setLineDash([]);
}
