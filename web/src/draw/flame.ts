/** The flame graph's canvas: drawing, pointer, keyboard. */
import type { FlameNode } from "../data/types";
import { visible } from "../data/visible";
import { h } from "../dom";
import { count, percent } from "../format";
import { boxes, frames, search, type Box, type Frame, type Match } from "../layout/flame";
import { color } from "../theme";
import { hideTip, showTip } from "../tooltip";
import { surface } from "./canvas";

const ROW = 20;

export interface FlameGraph {
  element: HTMLElement;
  /** Marks matching frames; returns the share of all faults beneath them. */
  find: (query: string) => Match;
  reset: () => void;
  flip: () => void;
  isZoomed: () => boolean;
}

/** `announce` is told the selected frame in words, `zoomed` whenever the zoom changes. */
export function flameGraph(
  root: FlameNode,
  announce: (text: string) => void,
  zoomed: () => void,
): FlameGraph {
  const all = frames(root);
  let deepest = 0;
  const hues = moduleHues(all);
  let focus = all[0]!;
  let selected: Frame | null = null;
  let match: Match = { frames: new Set(), share: 0 };
  let growsUp = false;
  let shown: Box[] = [];

  const top = (box: Box) => (growsUp ? deepest - box.depth : box.depth) * ROW;
  const view = surface(
    {
      class: "flame",
      tabindex: 0,
      role: "application",
      "aria-label": "Flame graph. Arrow keys move, Enter zooms, Escape goes back to the whole.",
    },
    (width) => {
      shown = boxes(all, focus, width);
      deepest = shown.reduce((most, box) => Math.max(most, box.depth), 0);
      return (deepest + 1) * ROW;
    },
    (context) => {
      context.font = "12px system-ui, sans-serif";
      context.textBaseline = "middle";
      for (const box of shown) drawBox(context, box);
    },
  );

  function drawBox(context: CanvasRenderingContext2D, box: Box): void {
    const { frame } = box;
    const y = top(box);
    const isMatch = match.frames.has(frame);
    context.globalAlpha = box.isAncestor ? 0.55 : 1;
    context.fillStyle = isMatch ? color("match") : fill(frame, hues);
    context.fillRect(box.left, y, Math.max(0.5, box.width - 1), ROW - 1);
    if (box.width > 26) label(context, box, y, isMatch);
    context.globalAlpha = 1;
    if (frame === selected) {
      context.strokeStyle = color("ink");
      context.lineWidth = 2;
      context.strokeRect(box.left + 1, y + 1, Math.max(1, box.width - 3), ROW - 3);
    }
  }

  function label(context: CanvasRenderingContext2D, box: Box, y: number, isMatch: boolean): void {
    const text = fitting(context, title(box.frame.node), box.width - 9);
    context.fillStyle = isMatch ? color("match-ink") : color("flame-ink");
    context.fillText(text, box.left + 5, y + ROW / 2);
  }

  const words = (frame: Frame) =>
    `${title(frame.node)}${frame.node.module ? ` (${visible(frame.node.module)})` : ""}: ` +
    `${count(frame.node.total)} faults, ${percent(frame.width)} of all`;

  function zoom(frame: Frame): void {
    focus = frame;
    view.redraw();
    zoomed();
  }

  function select(frame: Frame | null): void {
    selected = frame;
    if (frame) announce(words(frame));
    view.redraw();
  }

  function goHome(): void {
    selected = all[0]!;
    zoom(all[0]!);
  }

  const at = (event: MouseEvent): Frame | null => {
    const { left, top: above } = view.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - above];
    const hit = shown.find((box) => x >= box.left && x < box.left + box.width && y >= top(box) && y < top(box) + ROW);
    return hit?.frame ?? null;
  };

  view.canvas.addEventListener("click", (event) => {
    const frame = at(event);
    if (!frame) return;
    selected = frame;
    announce(words(frame));
    zoom(frame === focus && frame.parent ? frame.parent : frame);
  });
  view.canvas.addEventListener("pointermove", (event) => {
    const frame = at(event);
    if (!frame) return hideTip();
    showTip(event.clientX, event.clientY, ...tip(frame));
  });
  view.canvas.addEventListener("pointerleave", hideTip);
  view.canvas.addEventListener("keydown", (event) => {
    const from = selected ?? focus;
    const next = step(event.key, from, all, growsUp);
    if (next) select(next);
    else if (event.key === "Enter") zoom(from);
    else if (event.key === "Escape") goHome();
    else return;
    event.preventDefault();
  });

  return {
    element: h("div", { class: "canvas-box deep" }, view.canvas),
    find: (query) => {
      match = search(all, query);
      view.redraw();
      return match;
    },
    reset: goHome,
    flip: () => {
      growsUp = !growsUp;
      view.redraw();
    },
    isZoomed: () => focus !== all[0],
  };
}

/** As much of `text` as is at most `room` pixels wide. */
function fitting(context: CanvasRenderingContext2D, text: string, room: number): string {
  const width = context.measureText(text).width;
  if (width <= room) return text;
  let keep = Math.floor((text.length * room) / width);
  while (keep > 0 && context.measureText(`${text.slice(0, keep)}…`).width > room) keep -= 1;
  return keep > 0 ? `${text.slice(0, keep)}…` : "";
}

const title = (node: FlameNode): string => visible(node.name) || "(no name)";

const tip = (frame: Frame): Node[] => [
  h("strong", {}, frame.node.name || "(no name)"),
  h("div", { class: "faint" }, frame.node.module || "unknown file"),
  h("div", {}, `${count(frame.node.total)} faults · ${percent(frame.width)} of all`),
];

/** The frame that a key leads to, if any. */
function step(key: string, from: Frame, all: Frame[], growsUp: boolean): Frame | null {
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
