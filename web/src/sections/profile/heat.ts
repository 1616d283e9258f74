/** When the samples fell, and the flame graph of exactly the range that the reader drags over. */
import type { ProfilePage } from "../../data/profile";
import { h } from "../../dom";
import { choice } from "../../draw/choice";
import type { FlameWords } from "../../draw/flame";
import { flamePanel, installSlash } from "../../draw/flamePanel";
import { heatView } from "../../draw/heat";
import { count, nanos, percent } from "../../format";
import { heat, marked, rangeOf, treeOf, weigh, type Filter, type Scale } from "../../layout/heat";
import type { Section } from "../section";

/** A column and what it is cut into. */
const SCALES: Record<string, Scale> = {
  fine: { column: 250_000, rows: 50 },
  scope: { column: 1_000_000, rows: 50 },
  wide: { column: 5_000_000, rows: 50 },
  minute: { column: 60_000_000, rows: 60 },
};
const SCALE_NAMES: [string, string][] = [
  ["scope", "1 s × 20 ms"],
  ["fine", "250 ms × 5 ms"],
  ["wide", "5 s × 100 ms"],
  ["minute", "1 min × 1 s"],
];

export const heatSection: Section<ProfilePage> = {
  id: "heat",
  title: "Samples over time",
  nav: "Over time",
  applies: (page) => page.samples > 0,
  intro: () => "A column is a second, its rows are parts of that second from the bottom up, as in FlameScope; strong cells have much. Drag over the map: the flame graph below is of exactly that range.",
  render: (page) => {
    const data = page.decoded!;
    installSlash();
    const state = { filter: { event: 0, thread: null } as Filter, scale: "scope", query: "", range: null as [number, number] | null };
    const start = page.start_ns / 1000;
    const now = () => heat(data, page.span_ns / 1000, start, SCALES[state.scale]!, state.filter, marked(data, page.frames, state.query));
    let current = now();
    const unit = () => page.events[state.filter.event]?.unit ?? "samples";
    const amount = (weight: number) => (unit() === "nanoseconds" ? nanos(weight) : `${count(weight)} ${unit()}`);
    const words: FlameWords = { weight: amount, module: (module) => module || "unknown file", search: "Search function or file" };
    const flame = h("div", {});
    const status = h("p", { class: "lead", id: "heat-range", "aria-live": "polite" });
    const all = h("button", { type: "button", class: "quiet", hidden: true }, "Whole recording");
    const showFlame = () => {
      const range = state.range ?? ([0, Infinity] as [number, number]);
      const { totals, samples } = weigh(data, range, state.filter);
      const [from, to] = range;
      const whole = current.total > 0 ? (totals[0] ?? 0) / current.total : 0;
      status.textContent = state.range ? `${nanos(Math.max(0, from) * 1000)} to ${nanos(to * 1000)}: ${count(samples)} samples, ${amount(totals[0] ?? 0)}, ${percent(whole)} of all` : `Whole recording: ${count(samples)} samples, ${amount(totals[0] ?? 0)}`;
      all.hidden = state.range === null;
      const tree = treeOf(data, totals, (frame) => {
        const [name, module] = page.frames[frame] ?? ["", 0];
        return [name, page.modules[module] ?? ""];
      });
      flame.replaceChildren(tree.total > 0 ? flamePanel(tree, words, "the weight", 0) : h("p", { class: "absent" }, "No sample lies in this range."));
    };
    const view = heatView(
      current,
      (a, b) => {
        state.range = rangeOf(current, a, b);
        showFlame();
      },
      (cell) => {
        const [from, to] = rangeOf(current, cell, cell);
        return [amount(current.cells[cell] ?? 0), `${nanos(Math.max(0, from) * 1000)} to ${nanos(Math.max(0, to) * 1000)}`, ...(current.matched ? [`${amount(current.matched[cell] ?? 0)} match`] : [])];
      },
    );
    const redo = () => {
      current = now();
      state.range = null;
      view.show(current);
      showFlame();
    };
    all.addEventListener("click", () => {
      state.range = null;
      view.select(null);
      showFlame();
    });
    const events = h("select", { "aria-label": "Event", id: "heat-event" }, ...page.events.map((event, at) => h("option", { value: at }, event.name)));
    events.addEventListener("change", () => {
      state.filter = { ...state.filter, event: Number(events.value) };
      redo();
    });
    const threads = h("select", { "aria-label": "Thread", id: "heat-thread" }, h("option", { value: "" }, "all threads"), ...page.threads.map(([pid, tid, comm], at) => h("option", { value: at }, `${comm} ${pid === tid ? tid : `${pid}/${tid}`}`)));
    threads.addEventListener("change", () => {
      state.filter = { ...state.filter, thread: threads.value === "" ? null : Number(threads.value) };
      redo();
    });
    const search = h("input", { type: "search", id: "heat-search", placeholder: "Colour a function", "aria-label": "Colour a function", autocomplete: "off", spellcheck: "false" });
    const found = h("output", { class: "faint", id: "heat-found", for: "heat-search" });
    search.addEventListener("input", () => {
      state.query = search.value;
      current = now();
      const sum = current.matched?.reduce((all, part) => all + part, 0) ?? 0;
      found.textContent = current.matched ? `${percent(current.total > 0 ? sum / current.total : 0)} of all` : "";
      const kept = state.range;
      view.show(current);
      state.range = kept;
    });
    const scales = choice("Scale", SCALE_NAMES, (scale) => {
      state.scale = scale;
      redo();
    });
    showFlame();
    return h(
      "div",
      {},
      h("div", { class: "tools" }, events, threads, page.has_times && scales, search, found),
      page.has_times ? view.element : h("p", { class: "absent" }, "Not in this recording: its samples have no times."),
      h("div", { class: "tools below" }, status, h("span", { class: "spring" }), all),
      flame,
    );
  },
};
