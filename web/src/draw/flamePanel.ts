/** A flame graph with its search, zoom and direction. */
import type { FlameNode } from "../data/types";
import { h } from "../dom";
import { count, percent } from "../format";
import { single } from "../layout/amounts";
import { flatten, matching } from "../layout/tree";
import { flameGraph, type FlameWords } from "./flame";

/** `what` completes "12 % of …" after a search; `leftOut` is the number of missing boxes. */
export function flamePanel(root: FlameNode, words: FlameWords, what: string, leftOut: number, id = "flame"): HTMLElement {
  const { tree, frames, totals } = flatten(root);
  const data = { tree, frames, amounts: single({ totals, samples: 0, span: 1 }), root: root.name };
  const status = h("p", { class: "faint status", "aria-live": "polite" }, "\u00a0");
  const reset = h("button", { type: "button", class: "quiet", hidden: true, id: `${id}-reset` }, "Show all");
  const graph = flameGraph(data, words, {
    selected: (_, text) => (status.textContent = text),
    zoomed: () => (reset.hidden = !graph.isZoomed()),
  });
  reset.addEventListener("click", graph.reset);
  const found = h("output", { class: "faint", id: `${id}-found`, for: `${id}-search` });
  const hint = words.search;
  const search = h("input", { type: "search", id: `${id}-search`, placeholder: hint, title: "Text, or a regular expression", "aria-label": hint, autocomplete: "off", spellcheck: "false" });
  search.addEventListener("input", () => {
    const match = graph.find(matching(frames, search.value));
    found.textContent = !match.frames ? "" : match.count === 0 ? "No match" : `${percent(match.share)} of ${what} in ${count(match.count)} ${match.count === 1 ? "box" : "boxes"}`;
  });
  return h(
    "div",
    {},
    h("div", { class: "tools" }, search, found, h("span", { class: "spring" }), reset, flipButton(graph.flip, `${id}-flip`)),
    graph.element,
    status,
    leftOut > 0 && h("p", { class: "faint" }, `${count(leftOut)} boxes too small to see were left out to keep this file small.`),
  );
}

export function flipButton(flip: () => void, id: string): HTMLElement {
  const button = h("button", { type: "button", class: "quiet", id, "aria-pressed": "false" }, "Root at the bottom");
  button.addEventListener("click", () => {
    flip();
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
  });
  return button;
}

/** "/" jumps to the search, as readers of flame graphs expect. */
export function installSlash(id = "flame-search"): void {
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLInputElement;
    const search = document.getElementById(id);
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || !search) return;
    event.preventDefault();
    search.focus();
  });
}
