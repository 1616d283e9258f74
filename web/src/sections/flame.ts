import { h } from "../dom";
import { flameGraph } from "../draw/flame";
import { count, percent } from "../format";
import type { Section } from "./section";

export const flame: Section = {
  id: "flame",
  title: "Page-fault flame graph",
  nav: "Flame graph",
  applies: (report) => report.findings.flame.total > 0 && report.findings.flame.children.length > 0,
  intro: () =>
    "Which code caused the faults. Each box is a function, as wide as its share of all faults; what it called is next to it. Click a box to zoom in, click it again to go back. Colours tell files apart.",
  render: (report) => {
    const status = h("p", { class: "faint status", "aria-live": "polite" }, "\u00a0");
    const reset = h("button", { type: "button", class: "quiet", hidden: true, id: "flame-reset" }, "Show all");
    const root = { ...report.findings.flame, name: report.findings.flame.name || "all" };
    const graph = flameGraph(
      root,
      (text) => (status.textContent = text),
      () => (reset.hidden = !graph.isZoomed()),
    );
    reset.addEventListener("click", graph.reset);
    const found = h("output", { class: "faint", id: "flame-found", for: "flame-search" });
    const search = h("input", { type: "search", id: "flame-search", placeholder: "Search function or file", "aria-label": "Search function or file", autocomplete: "off", spellcheck: "false" });
    search.addEventListener("input", () => {
      const { frames, share } = graph.find(search.value);
      found.textContent = search.value.trim() === "" ? "" : `${percent(share)} of the faults in ${count(frames.size)} ${frames.size === 1 ? "box" : "boxes"}`;
    });
    const flip = h("button", { type: "button", class: "quiet", id: "flame-flip", "aria-pressed": "false" }, "Root at the bottom");
    flip.addEventListener("click", () => {
      graph.flip();
      flip.setAttribute("aria-pressed", String(flip.getAttribute("aria-pressed") !== "true"));
    });
    installSlash(search);
    return h(
      "div",
      {},
      h("div", { class: "tools" }, search, found, h("span", { class: "spring" }), reset, flip),
      graph.element,
      status,
      report.frames_left_out > 0 && h("p", { class: "faint" }, `${count(report.frames_left_out)} boxes too small to see were left out to keep this file small.`),
    );
  },
};

/** "/" jumps to the search, as readers of flame graphs expect. */
function installSlash(search: HTMLInputElement): void {
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLInputElement;
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    search.focus();
  });
}
