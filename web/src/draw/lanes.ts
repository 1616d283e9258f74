/** Time series under a heat map, column for column. */
import { h } from "../dom";
import { compact, nanos } from "../format";
import type { Heat } from "../layout/heat";
import type { Lane } from "../layout/lanes";
import { color } from "../theme";
import { hideTip, showTip } from "../tooltip";
import { surface } from "./canvas";
import { columnWidth, LEFT, type Cells } from "./heat";
import { INKS } from "./inks";

const TALL = 32;
const HEAD = 17;
/** Series shown before the reader asks for all. */
const FIRST = 5;

export interface LanesView {
  element: HTMLElement;
  show: (heat: Heat, lanes: Lane[]) => void;
  select: (chosen: Cells | null) => void;
  hover: (column: number | null) => void;
}

/** Units in the singular. */
const ONE: Record<Exclude<Lane["unit"], "ratio">, string> = { CPUs: "CPU", threads: "thread", "per second": "per second" };

export const laneValue = (lane: Lane, value: number): string => (lane.unit === "ratio" ? value.toFixed(2) : `${compact(value)} ${value === 1 ? ONE[lane.unit] : lane.unit}`);

export function lanesView(first: Heat): LanesView {
  const state = { heat: first, lanes: [] as Lane[], all: [] as Lane[], isOpen: false, chosen: null as Cells | null, at: null as number | null };
  const view = surface({ class: "lanes", role: "img" }, () => state.lanes.length * (TALL + HEAD), (context, width) => draw(context, state, columnWidth(state.heat, width)));
  view.canvas.addEventListener("pointermove", (event) => {
    const box = view.canvas.getBoundingClientRect();
    const column = (event.clientX - box.left - LEFT) / columnWidth(state.heat, box.width);
    const lane = state.lanes[Math.floor((event.clientY - box.top) / (TALL + HEAD))];
    state.at = column >= 0 && column < state.heat.columns ? column : null;
    view.redraw();
    if (!lane || state.at === null) return hideTip();
    const parts = lane.values.length / state.heat.columns;
    const value = lane.values[Math.floor(column * parts)] ?? 0;
    const time = state.heat.origin + column * state.heat.height * state.heat.scale.rows;
    const tick = state.heat.scale.column / state.heat.scale.rows / state.heat.height;
    showTip(event.clientX, event.clientY, h("strong", {}, laneValue(lane, value)), h("div", {}, lane.name), h("div", { class: "faint" }, `at ${nanos(Math.max(0, time * tick))}`));
  });
  view.canvas.addEventListener("pointerleave", () => {
    hideTip();
    state.at = null;
    view.redraw();
  });
  const more = h("button", { type: "button", class: "quiet", hidden: true });
  const open = () => {
    const { all, isOpen } = state;
    state.lanes = isOpen ? all : all.slice(0, FIRST);
    more.hidden = all.length <= FIRST;
    more.textContent = isOpen ? "Fewer time series" : `All ${all.length} time series`;
    view.canvas.setAttribute("aria-label", `Over the same time: ${state.lanes.map((lane) => `${lane.name}, at most ${laneValue(lane, lane.most)}`).join("; ")}`);
    view.redraw();
  };
  more.addEventListener("click", () => {
    state.isOpen = !state.isOpen;
    open();
  });
  return {
    element: h("div", { class: "lane-box" }, h("div", { class: "canvas-box" }, view.canvas), more),
    show: (heat, lanes) => {
      Object.assign(state, { heat, all: lanes });
      open();
    },
    select: (chosen) => {
      state.chosen = chosen;
      view.redraw();
    },
    hover: (column) => {
      state.at = column;
      view.redraw();
    },
  };
}

function draw(context: CanvasRenderingContext2D, { heat, lanes, chosen, at }: { heat: Heat; lanes: Lane[]; chosen: Cells | null; at: number | null }, wide: number): void {
  const all = wide * heat.columns;
  lanes.forEach((lane, index) => {
    const top = index * (TALL + HEAD);
    const ink = color(INKS[index % INKS.length]!);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillStyle = color("ink");
    context.fillText(lane.name, LEFT, top + HEAD / 2, Math.max(40, all * 0.7));
    const named = Math.min(context.measureText(lane.name).width, Math.max(40, all * 0.7));
    context.fillStyle = color("muted");
    context.fillText(`highest ${laneValue(lane, lane.most)}`, LEFT + named + 10, top + HEAD / 2);
    context.fillStyle = color("band");
    context.fillRect(LEFT, top + HEAD, all, TALL);
    const step = all / lane.values.length;
    context.beginPath();
    context.moveTo(LEFT, top + HEAD + TALL);
    lane.values.forEach((value, bin) => {
      const y = top + HEAD + TALL - (lane.most > 0 ? value / lane.most : 0) * (TALL - 3);
      context.lineTo(LEFT + bin * step, y);
      context.lineTo(LEFT + (bin + 1) * step, y);
    });
    context.lineTo(LEFT + all, top + HEAD + TALL);
    context.closePath();
    context.globalAlpha = 0.25;
    context.fillStyle = ink;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = ink;
    context.lineWidth = 1.2;
    context.stroke();
    context.fillStyle = color("ink");
    if (chosen) {
      const [from, to] = [chosen[0] / heat.scale.rows, (chosen[1] + 1) / heat.scale.rows];
      context.globalAlpha = 0.13;
      context.fillRect(LEFT + from * wide, top + HEAD, (to - from) * wide, TALL);
      context.globalAlpha = 1;
    }
    if (at !== null) context.fillRect(LEFT + at * wide, top + HEAD, 1, TALL);
  });
}
