/** A flame graph with its search, zoom and direction. */
import type { FlameNode } from "../data/types";
import { h } from "../dom";
import { count, percent } from "../format";
import { flameGraph, type FlameWords } from "./flame";

/** `what` is the end of "12 % of …" behind a search; `leftOut` counts boxes that are missing. */
export function flamePanel(root: FlameNode, words: FlameWords, what: string, leftOut: number): HTMLElement {
  const status = h("p", { class: "faint status", "aria-live": "polite" }, "\u00a0");
  const reset = h("button", { type: "button", class: "quiet", hidden: true, id: "flame-reset" }, "Show all");
  const graph = flameGraph(
    root,
    words,
    (text) => (status.textContent = text),
    () => (reset.hidden = !graph.isZoomed()),
  );
  reset.addEventListener("click", graph.reset);
  const found = h("output", { class: "faint", id: "flame-found", for: "flame-search" });
  const hint = words.search;
  const search = h("input", { type: "search", id: "flame-search", placeholder: hint, "aria-label": hint, autocomplete: "off", spellcheck: "false" });
  search.addEventListener("input", () => {
    const { frames, share } = graph.find(search.value);
    found.textContent = search.value.trim() === "" ? "" : `${percent(share)} of ${what} in ${count(frames.size)} ${frames.size === 1 ? "box" : "boxes"}`;
  });
  const flip = h("button", { type: "button", class: "quiet", id: "flame-flip", "aria-pressed": "false" }, "Root at the bottom");
  flip.addEventListener("click", () => {
    graph.flip();
    flip.setAttribute("aria-pressed", String(flip.getAttribute("aria-pressed") !== "true"));
  });
  return h(
    "div",
    {},
    h("div", { class: "tools" }, search, found, h("span", { class: "spring" }), reset, flip),
    graph.element,
    status,
    leftOut > 0 && h("p", { class: "faint" }, `${count(leftOut)} boxes too small to see were left out to keep this file small.`),
  );
}

/** "/" jumps to the search, as readers of flame graphs expect. */
export function installSlash(): void {
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLInputElement;
    const search = document.getElementById("flame-search");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || !search) return;
    event.preventDefault();
    search.focus();
  });
}
