/** The flame graph's canvas: drawing, pointer, keyboard. */
import type { FlameNode } from "../data/types";
import { visible } from "../data/visible";
import { h } from "../dom";
import { percent } from "../format";
import { boxes, frames, search, type Box, type Frame, type Match } from "../layout/flame";
import { color } from "../theme";
import { hideTip, showTip } from "../tooltip";
import { surface } from "./canvas";

const ROW = 20;
/** Narrower boxes have no label, pixels. */
const LEAST_LABEL = 26;

export interface FlameGraph {
  element: HTMLElement;
  /** Marks matching frames; returns the share of all faults beneath them. */
  find: (query: string) => Match;
  reset: () => void;
  flip: () => void;
  isZoomed: () => boolean;
}

/** How a box's figures are worded. */
export interface FlameWords {
  weight: (total: number) => string;
  /** The group that a colour stands for, named in the tip; empty names are none. */
  module: (module: string) => string;
  search: string;
}

/** What is shown, and how. */
interface State {
  words: FlameWords;
  all: Frame[];
  hues: Map<string, number>;
  focus: Frame;
  selected: Frame | null;
  match: Match;
  growsUp: boolean;
  shown: Box[];
  deepest: number;
}

const LABEL = "Flame graph. Arrow keys move, Enter zooms, Escape goes back to the whole.";

/** `announce` is told the selected frame in words, `zoomed` whenever the zoom changes. */
export function flameGraph(
  root: FlameNode,
  wording: FlameWords,
  announce: (text: string) => void,
  zoomed: () => void,
): FlameGraph {
  const all = frames(root);
  const home = all[0]!;
  const match: Match = { frames: new Set(), share: 0 };
  const state: State = { words: wording, all, hues: moduleHues(all), focus: home, selected: null, match, growsUp: false, shown: [], deepest: 0 };
  const view = surface(
    { class: "flame", tabindex: 0, role: "application", "aria-label": LABEL },
    (width) => place(state, width),
    (context) => draw(context, state),
  );
  const go = (focus: Frame, selected: Frame | null) => {
    Object.assign(state, { focus, selected });
    if (selected) announce(words(selected, wording));
    view.redraw();
    zoomed();
  };
  followPointer(view.canvas, state, go);
  followKeys(view.canvas, state, go);
  return {
    element: h("div", { class: "canvas-box deep" }, view.canvas),
    find: (query) => {
      state.match = search(all, query);
      view.redraw();
      return state.match;
    },
    reset: () => go(home, home),
    flip: () => {
      state.growsUp = !state.growsUp;
      view.redraw();
    },
    isZoomed: () => state.focus !== home,
  };
}

type Go = (focus: Frame, selected: Frame | null) => void;

function followPointer(canvas: HTMLCanvasElement, state: State, go: Go): void {
  const under = (event: MouseEvent) => {
    const { left, top } = canvas.getBoundingClientRect();
    return frameAt(state, event.clientX - left, event.clientY - top);
  };
  canvas.addEventListener("click", (event) => {
    const frame = under(event);
    if (frame) go(frame === state.focus && frame.parent ? frame.parent : frame, frame);
  });
  canvas.addEventListener("pointermove", (event) => {
    const frame = under(event);
    if (frame) showTip(event.clientX, event.clientY, ...tip(frame, state.words));
    else hideTip();
  });
  canvas.addEventListener("pointerleave", hideTip);
}

function followKeys(canvas: HTMLCanvasElement, state: State, go: Go): void {
  canvas.addEventListener("keydown", (event) => {
    const from = state.selected ?? state.focus;
    const next = step(event.key, from, state);
    if (next) go(state.focus, next);
    else if (event.key === "Enter") go(from, from);
    else if (event.key === "Escape") go(state.all[0]!, state.all[0]!);
    else return;
    event.preventDefault();
  });
}

/** Lays the boxes out for a width; returns the height that they take. */
function place(state: State, width: number): number {
  state.shown = boxes(state.all, state.focus, width);
  state.deepest = state.shown.reduce((most, box) => Math.max(most, box.depth), 0);
  return (state.deepest + 1) * ROW;
}

const top = (state: State, box: Box) => (state.growsUp ? state.deepest - box.depth : box.depth) * ROW;

function frameAt(state: State, x: number, y: number): Frame | null {
  const holds = (box: Box) =>
    x >= box.left && x < box.left + box.width && y >= top(state, box) && y < top(state, box) + ROW;
  return state.shown.find(holds)?.frame ?? null;
}

function draw(context: CanvasRenderingContext2D, state: State): void {
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const box of state.shown) drawBox(context, state, box);
}

function drawBox(context: CanvasRenderingContext2D, state: State, box: Box): void {
  const y = top(state, box);
  const isMatch = state.match.frames.has(box.frame);
  context.globalAlpha = box.isAncestor ? 0.55 : 1;
  context.fillStyle = isMatch ? color("match") : fill(box.frame, state.hues);
  context.fillRect(box.left, y, Math.max(0.5, box.width - 1), ROW - 1);
  if (box.width > LEAST_LABEL) {
    context.fillStyle = color(isMatch ? "match-ink" : "flame-ink");
    context.fillText(fitting(context, title(box.frame.node), box.width - 9), box.left + 5, y + ROW / 2);
  }
  context.globalAlpha = 1;
  if (box.frame !== state.selected) return;
  context.strokeStyle = color("ink");
  context.lineWidth = 2;
  context.strokeRect(box.left + 1, y + 1, Math.max(1, box.width - 3), ROW - 3);
}

const words = (frame: Frame, wording: FlameWords): string =>
  `${title(frame.node)}${frame.node.module ? ` (${visible(frame.node.module)})` : ""}: ` +
  `${wording.weight(frame.node.total)}, ${percent(frame.width)} of all`;

/** As much of `text` as is at most `room` pixels wide. */
function fitting(context: CanvasRenderingContext2D, text: string, room: number): string {
  const width = context.measureText(text).width;
  if (width <= room) return text;
  let keep = Math.floor((text.length * room) / width);
  while (keep > 0 && context.measureText(`${text.slice(0, keep)}…`).width > room) keep -= 1;
  return keep > 0 ? `${text.slice(0, keep)}…` : "";
}

const title = (node: FlameNode): string => visible(node.name) || "(no name)";

const tip = (frame: Frame, wording: FlameWords): Node[] => [
  h("strong", {}, frame.node.name || "(no name)"),
  h("div", { class: "faint" }, wording.module(frame.node.module)),
  h("div", {}, `${wording.weight(frame.node.total)} · ${percent(frame.width)} of all`),
];

/** The frame that a key leads to, if any. */
function step(key: string, from: Frame, { all, growsUp }: State): Frame | null {
  const inward = growsUp ? "ArrowUp" : "ArrowDown";
  const outward = growsUp ? "ArrowDown" : "ArrowUp";
  if (key === outward) return from.parent;
  if (key === inward) return all.find((frame) => frame.parent === from) ?? null;
  if (key !== "ArrowLeft" && key !== "ArrowRight") return null;
  const siblings = all.filter((frame) => frame.parent === from.parent);
  return siblings[siblings.indexOf(from) + (key === "ArrowLeft" ? -1 : 1)] ?? null;
}

/** Each file gets a hue, the heaviest first, so that neighbours differ and a reload looks the same. */
function moduleHues(all: Frame[]): Map<string, number> {
  const weights = new Map<string, number>();
  for (const { node } of all) {
    const own = node.total - node.children.reduce((sum, child) => sum + child.total, 0);
    weights.set(node.module, (weights.get(node.module) ?? 0) + Math.max(0, own));
  }
  const order = [...weights].sort((a, b) => b[1] - a[1]).map(([module]) => module);
  return new Map(order.map((module, index) => [module, [28, 205, 150, 265, 340, 95, 50, 180][index % 8]!]));
}

function fill(frame: Frame, hues: Map<string, number>): string {
  if (frame.depth === 0 || frame.node.module === "") return color("flame-none");
  const hue = hues.get(frame.node.module) ?? 0;
  const shade = (frame.node.name.length * 7 + frame.depth * 3) % 5;
  return `hsl(${hue} ${color("flame-saturation")} calc(${color("flame-light")} + ${shade * 1.4}%))`;
}
