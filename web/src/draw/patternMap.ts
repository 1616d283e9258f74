/** The map of call paths as an SVG diagram: unfold, point, select, by mouse and by keyboard. */
import { visible } from "../data/visible";
import { h, s } from "../dom";
import { count, nanos, percent, within } from "../format";
import { layoutPatterns, timeShare, type PatternBox, type Unfolding } from "../layout/patternMap";
import type { Call, CallTree } from "../layout/callTree";
import { hideTip, showTip } from "../tooltip";

const WIDTH = 194;
const HEIGHT = 42;
const GAP_X = 40;
const GAP_Y = 9;
const MARGIN = 6;
/** Number of characters of a name that fit into a box. */
const NAME = 25;

export interface PatternLook {
  /** Colour class of a kind of fault. */
  ink: (kind: string) => string;
  kindName: (kind: string) => string;
  /** The reader chose a call. */
  select: (call: Call) => void;
}

export interface PatternView {
  element: HTMLElement;
  redraw: () => void;
  mark: (calls: Set<Call>) => void;
  selected: () => Call | null;
}

export function patternView(tree: CallTree, unfolding: Unfolding, look: PatternLook): PatternView {
  const svg = s("svg", { class: "patterns", role: "tree", "aria-label": "Call paths of the faults" });
  const holder = h("div", { class: "pattern-scroll" }, svg);
  const state = { marked: new Set<Call>(), selected: tree.roots[0] ?? null, focus: tree.roots[0] ?? null, byCall: new Map<Call, SVGElement>() };
  const toggle = (box: PatternBox) => {
    if (box.small.length > 0) unfolding.openSmall.add(box.call);
    else if (unfolding.open.has(box.call)) unfolding.open.delete(box.call);
    else unfolding.open.add(box.call);
    redraw();
  };
  const choose = (box: PatternBox) => {
    if (box.small.length > 0) return toggle(box);
    state.selected = state.focus = box.call;
    look.select(box.call);
    redraw();
    state.byCall.get(box.call)?.focus({ preventScroll: true });
  };
  const redraw = () => {
    hideTip();
    const { boxes, columns, rows } = layoutPatterns(tree, unfolding);
    const [width, height] = [columns * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN + 26, rows * (HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN];
    svg.setAttribute("width", String(width));
    svg.setAttribute("height", String(height));
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    state.byCall.clear();
    const edges = boxes.filter((box) => box.parent).map((box) => edge(box, tree, look));
    const drawn = boxes.map((box) => draw(box, tree, look, state, choose, toggle));
    boxes.forEach((box, at) => box.small.length === 0 && state.byCall.set(box.call, drawn[at]!));
    svg.replaceChildren(...edges, ...drawn);
  };
  holder.addEventListener("keydown", (event) => {
    const next = step(event.key, state.focus, unfolding, redraw);
    if (!next) return;
    event.preventDefault();
    state.focus = next;
    if (event.key === "Enter" || event.key === " ") choose({ call: next, small: [] } as unknown as PatternBox);
    if (!state.byCall.has(next) && next.parent) {
      unfolding.openSmall.add(next.parent);
      redraw();
    }
    const element = state.byCall.get(next);
    element?.focus();
    element?.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  redraw();
  return {
    element: holder,
    redraw,
    mark: (calls) => {
      state.marked = calls;
      redraw();
      const [first] = calls;
      if (first) state.byCall.get(first)?.scrollIntoView({ block: "nearest", inline: "nearest" });
    },
    selected: () => state.selected,
  };
}

const left = (box: PatternBox) => MARGIN + box.column * (WIDTH + GAP_X);
const top = (box: PatternBox) => MARGIN + box.row * (HEIGHT + GAP_Y);

/**
 * An edge from the right of the caller to the left of the callee; the more frequent the path, the
 * thicker.
 */
function edge(box: PatternBox, tree: CallTree, look: PatternLook): SVGElement {
  const parent = box.parent!;
  const wide = box.small.length > 0 ? 1.5 : 1 + 7 * Math.sqrt(box.call.faults / Math.max(1, tree.faults));
  const [x0, y0] = [left(parent) + WIDTH, top(parent) + HEIGHT / 2];
  const [x1, y1] = [left(box), top(box) + HEIGHT / 2];
  const middle = x0 + GAP_X * 0.55;
  const d = Math.abs(y1 - y0) < 1 ? `M${x0} ${y0}H${x1}` : `M${x0} ${y0}H${middle - 10}Q${middle} ${y0} ${middle} ${y0 + 12}V${y1 - 12}Q${middle} ${y1} ${middle + 10} ${y1}H${x1}`;
  return s("path", { class: `pattern-edge kline ${box.small.length > 0 ? "kx" : look.ink(mainKind(box.call))}`, d, "stroke-width": wide.toFixed(1) });
}

const mainKind = (call: Call): string => [...call.byClass].reduce((a, b) => (b[1] > a[1] ? b : a), ["", 0] as [string, number])[0];

interface Shown {
  marked: Set<Call>;
  selected: Call | null;
  focus: Call | null;
}

function draw(box: PatternBox, tree: CallTree, look: PatternLook, shown: Shown, choose: (box: PatternBox) => void, toggle: (box: PatternBox) => void): SVGElement {
  const isSmall = box.small.length > 0;
  const { call } = box;
  const share = isSmall ? box.small.reduce((sum, small) => sum + timeShare(tree, small), 0) : timeShare(tree, call);
  const name = isSmall ? `${count(box.small.length)} small calls` : fitted(call.name);
  const figures = isSmall ? `together ${percent(share)} of the time` : `${percent(call.faults / Math.max(1, tree.faults))} of faults · ${perFault(call)}`;
  const states = [isSmall ? "small" : "", shown.marked.has(call) && !isSmall ? "marked" : "", shown.selected === call && !isSmall ? "selected" : ""];
  // What is seen comes first, so that it is called by that; a name that did not fit follows in full.
  const full = name === call.name ? "" : `, in full ${call.name}`;
  const label = isSmall ? `${name}, ${figures}` : `${name}: ${figures}${box.hidden > 0 ? ` +${box.hidden} folded` : ""}, ${percent(share)} of the time${full}`;
  const group = s(
    "g",
    {
      class: `pattern ${states.join(" ")}`,
      role: "treeitem",
      tabindex: shown.focus === call && !isSmall ? 0 : -1,
      "aria-label": visible(label),
      "aria-expanded": call.children.length > 0 && !isSmall ? String(box.hidden === 0) : null,
      "aria-selected": String(shown.selected === call && !isSmall),
      transform: `translate(${left(box)} ${top(box)})`,
      click: () => choose(box),
      pointermove: (event: PointerEvent) => showTip(event.clientX, event.clientY, ...tip(box, tree, look)),
      pointerleave: hideTip,
    },
    s("rect", { class: "pattern-box", width: WIDTH, height: HEIGHT, rx: 6 }),
    ...(isSmall ? [] : strip(call, look)),
    s("rect", { class: "pattern-time-track", x: 10, y: HEIGHT - 6, width: WIDTH - 18, height: 3, rx: 1.5 }),
    s("rect", { class: "pattern-time", x: 10, y: HEIGHT - 6, width: Math.max(0, Math.min(1, share)) * (WIDTH - 18), height: 3, rx: 1.5 }),
    s("text", { class: "pattern-name", x: 11, y: 16 }, `${name} `),
    s("text", { class: "pattern-figures", x: 11, y: 31 }, `${figures} `),
  );
  if (isSmall || call.children.length > 0) group.append(button(box, toggle));
  return group;
}

/** The mix of kinds of faults that take the path, as a strip at the left edge. */
function strip(call: Call, look: PatternLook): SVGElement[] {
  let y = 3;
  const all = [...call.byClass].sort((a, b) => b[1] - a[1]);
  return all.map(([kind, faults]) => {
    const tall = ((HEIGHT - 6) * faults) / Math.max(1, call.faults);
    const piece = s("rect", { class: `kfill ${look.ink(kind)}`, x: 3, y, width: 4, height: Math.max(0.5, tall) });
    y += tall;
    return piece;
  });
}

function button(box: PatternBox, toggle: (box: PatternBox) => void): SVGElement {
  const isOpen = box.small.length === 0 && box.hidden === 0;
  const word = isOpen ? "−" : box.small.length > 0 ? "+" : `+${box.hidden}`;
  const wide = 14 + word.length * 5;
  return s(
    "g",
    {
      class: "pattern-toggle",
      transform: `translate(${WIDTH - wide / 2 + 4} ${HEIGHT / 2 - 9})`,
      click: (event: MouseEvent) => {
        event.stopPropagation();
        toggle(box);
      },
    },
    s("rect", { width: wide, height: 18, rx: 9 }),
    s("text", { x: wide / 2, y: 13, "text-anchor": "middle" }, word),
  );
}

/** Mean corrected time per fault that has the call. */
const perFault = (call: Call): string => nanos(call.correctedTotal / Math.max(1, call.faults));

function tip(box: PatternBox, tree: CallTree, look: PatternLook): Node[] {
  if (box.small.length > 0) {
    const names = box.small.slice(0, 8).map((call) => h("div", {}, h("code", {}, call.name), ` ${perFault(call)}, ${percent(call.faults / tree.faults)} of faults`));
    const more = box.small.length > 8 ? [h("div", { class: "faint" }, `and ${count(box.small.length - 8)} more`)] : [];
    return [h("strong", {}, "Small calls of "), h("code", {}, box.call.name), ...names, ...more];
  }
  const { call } = box;
  const kinds = [...call.byClass].sort((a, b) => b[1] - a[1]).slice(0, 4);
  const each = call.calls / Math.max(1, call.faults);
  return [
    h("strong", {}, call.name),
    h("div", {}, `${count(call.faults)} faults (${percent(call.faults / Math.max(1, tree.faults))})${each > 1.005 ? `, ${each.toFixed(1)} calls in each` : ""}`),
    h("div", {}, `${within(call.correctedTotal / Math.max(1, call.faults), call.error / Math.max(1, call.faults))} in each, without tracing; ${nanos(call.total / Math.max(1, call.faults))} as traced`),
    h("div", {}, `${percent(timeShare(tree, call))} of the time, its own ${nanos(call.correctedSelf / Math.max(1, call.faults))}`),
    ...kinds.map(([kind, faults]) => h("div", { class: "faint" }, `${look.kindName(kind)}: ${count(faults)}`)),
  ];
}

function fitted(name: string): string {
  const text = visible(name);
  return text.length <= NAME ? text : `${text.slice(0, NAME - 1)}…`;
}

/** The call to which a key leads; right unfolds and left folds, as in a file tree. */
function step(key: string, from: Call | null, unfolding: Unfolding, redraw: () => void): Call | null {
  if (!from) return null;
  const siblings = from.parent?.children ?? [from];
  const at = siblings.indexOf(from);
  if (key === "ArrowDown") return siblings[at + 1] ?? from;
  if (key === "ArrowUp") return siblings[at - 1] ?? from;
  if (key === "ArrowLeft") return from.parent ?? from;
  if (key === "Enter" || key === " ") return from;
  if (key !== "ArrowRight" || from.children.length === 0) return null;
  unfolding.open.add(from);
  redraw();
  return [...from.children].sort((a, b) => b.correctedTotal - a.correctedTotal)[0] ?? null;
}
