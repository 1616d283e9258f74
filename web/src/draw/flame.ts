/** The flame graph's canvas: drawing, pointer, keyboard. Only what is in view is drawn. */
import { visible } from "../data/visible";
import { h } from "../dom";
import { percent } from "../format";
import { changeOf, type Amounts, type Change } from "../layout/amounts";
import { boxes, search, step, type Box, type Direction, type Match } from "../layout/flame";
import type { Tree } from "../layout/tree";
import { color, onTheme } from "../theme";
import { hideTip, showTip } from "../tooltip";
import { whenSized } from "./canvas";
import { filler, type Filler } from "./flameColors";

const ROW = 20;
/** Narrower boxes have no label, pixels. */
const LEAST_LABEL = 26;
/** Rows beyond this height are scrolled, share of the window's height. */
const TALLEST = 0.8;

export interface FlameFrame {
  name: string;
  module: string;
}

/** A tree with the meaning of its boxes. */
export interface FlameData {
  tree: Tree;
  frames: FlameFrame[];
  amounts: Amounts;
  /** The name of the root. */
  root: string;
}

export interface FlameGraph {
  element: HTMLElement;
  /** Shows another choice of samples; the zoom is kept if the tree is the same. */
  show: (data: FlameData) => void;
  /** Marks frames; returns the share of all beneath them. */
  find: (frames: Uint8Array | null) => Match;
  reset: () => void;
  flip: () => void;
  isZoomed: () => boolean;
}

/** How a box's figures are worded. */
export interface FlameWords {
  /** What boxes are weighed by. */
  readonly of: string;
  weight: (total: number) => string;
  /** The group that a colour stands for, named in the tooltip; an empty name means none. */
  module: (module: string) => string;
  search: string;
}

export interface FlameEvents {
  /** The selected box: its node, and in words. */
  selected: (node: number, words: string) => void;
  zoomed: () => void;
}

interface State {
  data: FlameData;
  words: FlameWords;
  focus: number;
  selected: number | null;
  match: Match;
  growsUp: boolean;
  shown: Box[];
  deepest: number;
  width: number;
  fill: Filler;
}

const label = ({ of }: FlameWords): string => `Flame graph of ${of}. Arrow keys move, Enter zooms, Escape goes back to the whole.`;

export function flameGraph(data: FlameData, words: FlameWords, events: FlameEvents): FlameGraph {
  const canvas = h("canvas", { class: "flame", tabindex: 0, role: "application", "aria-label": label(words) });
  const room = h("div", { class: "flame-room" }, canvas);
  const scroller = h("div", { class: "deep" }, room);
  const none: Match = { frames: null, count: 0, share: 0 };
  const state: State = { data, words, focus: 0, selected: null, match: none, growsUp: false, shown: [], deepest: 0, width: 0, fill: filler(data) };
  const paint = () => draw(canvas, scroller, state);
  const redraw = () => {
    if (state.width === 0) return;
    state.shown = boxes(state.data.tree, state.data.amounts.widths, state.focus, state.width);
    state.deepest = state.shown.reduce((most, box) => Math.max(most, box.depth), 0);
    room.style.height = `${(state.deepest + 1) * ROW}px`;
    paint();
  };
  whenSized(room, (width) => {
    state.width = width;
    redraw();
  });
  scroller.addEventListener("scroll", paint);
  onTheme(() => {
    state.fill = filler(state.data);
    redraw();
  });
  const go = (focus: number, selected: number | null) => {
    const isZoom = focus !== state.focus;
    Object.assign(state, { focus, selected });
    if (selected !== null) events.selected(selected, inWords(state, selected));
    redraw();
    if (isZoom && !state.growsUp) scroller.scrollTop = Math.max(0, (state.data.tree.depths[focus]! - 2) * ROW);
    events.zoomed();
  };
  followPointer(canvas, scroller, state, go);
  followKeys(canvas, state, go);
  return {
    element: scroller,
    show: (next) => {
      const isOther = next.tree !== state.data.tree;
      state.data = next;
      canvas.setAttribute("aria-label", label(words));
      state.fill = filler(next);
      if (isOther || !(next.amounts.widths[state.focus]! > 0)) Object.assign(state, { focus: 0, selected: null });
      redraw();
      events.zoomed();
    },
    find: (frames) => {
      state.match = search(state.data.tree, state.data.amounts.widths, frames);
      paint();
      return state.match;
    },
    reset: () => go(0, 0),
    flip: () => {
      state.growsUp = !state.growsUp;
      paint();
      scroller.scrollTop = state.growsUp ? scroller.scrollHeight : 0;
    },
    isZoomed: () => state.focus !== 0,
  };
}

type Go = (focus: number, selected: number | null) => void;

function followPointer(canvas: HTMLCanvasElement, scroller: HTMLElement, state: State, go: Go): void {
  const under = (event: MouseEvent): number | null => {
    const { left, top } = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top + scroller.scrollTop];
    const row = Math.floor(y / ROW);
    const depth = state.growsUp ? state.deepest - row : row;
    return state.shown.find((box) => box.depth === depth && x >= box.left && x < box.left + box.width)?.node ?? null;
  };
  canvas.addEventListener("click", (event) => {
    const node = under(event);
    if (node !== null) go(node === state.focus ? state.data.tree.parents[node]! : node, node);
  });
  canvas.addEventListener("pointermove", (event) => {
    const node = under(event);
    if (node !== null) showTip(event.clientX, event.clientY, ...tip(state, node));
    else hideTip();
  });
  canvas.addEventListener("pointerleave", hideTip);
}

function followKeys(canvas: HTMLCanvasElement, state: State, go: Go): void {
  const turned: Record<string, Direction> = { ArrowUp: "ArrowDown", ArrowDown: "ArrowUp" };
  canvas.addEventListener("keydown", (event) => {
    const { tree, amounts } = state.data;
    const from = state.selected ?? state.focus;
    if (event.key === "Enter") go(from, from);
    else if (event.key === "Escape") go(0, 0);
    else if (/^Arrow/.test(event.key)) {
      const key = (state.growsUp && turned[event.key]) || (event.key as Direction);
      const next = step(tree, amounts.widths, from, key);
      if (next !== null) go(state.focus, next);
    } else return;
    event.preventDefault();
  });
}

/** Draws the rows that are scrolled into view; the canvas moves along. */
function draw(canvas: HTMLCanvasElement, scroller: HTMLElement, state: State): void {
  const { width } = state;
  if (width === 0) return;
  const tall = Math.min((state.deepest + 1) * ROW, Math.max(8 * ROW, Math.floor(innerHeight * TALLEST)));
  const density = Math.max(1, devicePixelRatio);
  const [w, t] = [Math.round(width * density), Math.round(tall * density)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== t) canvas.height = t;
  canvas.style.height = `${tall}px`;
  scroller.style.maxHeight = `${tall}px`;
  const context = canvas.getContext("2d");
  if (!context) return;
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, width, tall);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  const inks = { match: color("match"), matchInk: color("match-ink"), ink: color("flame-ink"), edge: color("ink") };
  for (const box of state.shown) {
    const y = (state.growsUp ? state.deepest - box.depth : box.depth) * ROW - scroller.scrollTop;
    if (y > -ROW && y < tall) drawBox(context, state, box, y, inks);
  }
}

function drawBox(context: CanvasRenderingContext2D, state: State, box: Box, y: number, inks: { match: string; matchInk: string; ink: string; edge: string }): void {
  const { tree } = state.data;
  const isMatch = box.node !== 0 && state.match.frames?.[tree.frames[box.node]!] === 1;
  context.globalAlpha = box.isAncestor ? 0.55 : 1;
  context.fillStyle = isMatch ? inks.match : state.fill(box.node);
  context.fillRect(box.left, y, Math.max(0.5, box.width - 1), ROW - 1);
  if (box.width > LEAST_LABEL) {
    context.fillStyle = isMatch ? inks.matchInk : inks.ink;
    context.fillText(fitting(context, title(state.data, box.node), box.width - 9), box.left + 5, y + ROW / 2);
  }
  context.globalAlpha = 1;
  if (box.node !== state.selected) return;
  context.strokeStyle = inks.edge;
  context.lineWidth = 2;
  context.strokeRect(box.left + 1, y + 1, Math.max(1, box.width - 3), ROW - 3);
}

/** The part of `text` that is at most `room` pixels wide. */
function fitting(context: CanvasRenderingContext2D, text: string, room: number): string {
  const width = context.measureText(text).width;
  if (width <= room) return text;
  let keep = Math.floor((text.length * room) / width);
  while (keep > 0 && context.measureText(`${text.slice(0, keep)}…`).width > room) keep -= 1;
  return keep > 0 ? `${text.slice(0, keep)}…` : "";
}

/** Names may have any length; a label shows at most this many characters. */
const MOST_LETTERS = 300;

function title(data: FlameData, node: number): string {
  const name = node === 0 ? data.root : (data.frames[data.tree.frames[node]!]?.name ?? "");
  return visible(name.slice(0, MOST_LETTERS)) || "(no name)";
}

const moduleOf = ({ tree, frames }: FlameData, node: number): string => (node === 0 ? "" : (frames[tree.frames[node]!]?.module ?? ""));

/** How a node differs, if two sides are compared. */
function change({ amounts: { base, chosen, samples } }: FlameData, node: number): Change | null {
  return base && chosen ? changeOf(base[node]!, chosen[node]!, [base[0]!, chosen[0]!], samples) : null;
}

/** Figures of a node, most informative first. */
function figures({ data, words }: State, node: number): string[] {
  const { widths } = data.amounts;
  const differs = change(data, node);
  if (!differs) {
    const share = widths[0]! > 0 ? widths[node]! / widths[0]! : 0;
    return [`${words.weight(widths[node]!)} · ${percent(share)} of all`];
  }
  return [`${words.weight(differs.b)} against ${words.weight(differs.a)}`, changeWords(differs)];
}

export function changeWords({ a, b, errors }: Change): string {
  if (a === 0) return b === 0 ? "in neither" : `new${doubt(errors)}`;
  if (b === 0) return `vanished${doubt(errors)}`;
  const factor = b / a;
  const size = factor >= 2 || factor <= 0.5 ? `${factor >= 1 ? "×" : "÷"}${(factor >= 1 ? factor : 1 / factor).toPrecision(2)}` : `${factor >= 1 ? "+" : "−"}${percent(Math.abs(factor - 1))}`;
  return `${size}${doubt(errors)}`;
}

const doubt = (errors: number): string => (Math.abs(errors) < 2 ? ", within counting error" : "");

function inWords(state: State, node: number): string {
  const module = moduleOf(state.data, node);
  return `${title(state.data, node)}${module ? ` (${visible(module)})` : ""}: ${figures(state, node).join(", ")}`;
}

function tip(state: State, node: number): Node[] {
  const [first, ...rest] = figures(state, node);
  return [h("strong", {}, title(state.data, node)), h("div", { class: "faint" }, node === 0 ? "" : state.words.module(moduleOf(state.data, node))), h("div", {}, first), ...rest.map((line) => h("div", {}, line))];
}
