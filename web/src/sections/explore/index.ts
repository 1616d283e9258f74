/** Samples over time and the contents of any range: heat map, time series, flame graph, tables. */
import type { Profiles } from "../../data/profile";
import { h } from "../../dom";
import { choice } from "../../draw/choice";
import { installSlash } from "../../draw/flamePanel";
import { percent } from "../../format";
import { Explorer, type Choice } from "../../layout/explorer";
import { filters } from "./filters";
import { maps } from "./maps";
import { results } from "./results";
import { choiceWords, totalWords } from "./words";

/** `events` are the choices; the first one is selected at first. */
export function explorer(profiles: Profiles, events: string[]): HTMLElement {
  const model = new Explorer(profiles, events[0] ?? profiles.sides[0]?.tracks[0]?.event ?? "");
  installSlash("profile-search");
  const parts = results(model);
  const range = h("div", { id: "profile-range", "aria-live": "polite" });
  const whole = h("button", { type: "button", class: "quiet", id: "profile-whole" }, "Whole recording");
  const rest = h("button", { type: "button", class: "quiet", id: "profile-rest" }, "Compare with the rest");
  const second = h("button", { type: "button", class: "quiet", id: "profile-second", "aria-pressed": "false" }, "Compare with another range");
  const end = h("button", { type: "button", class: "quiet", id: "profile-alone" }, "End comparison");
  const measures = choice("How amounts are compared", [["rate", "by time"], ["share", "by share"]], (value) => {
    model.measure = value as Explorer["measure"];
    redo();
  });
  const found = h("output", { class: "faint", id: "profile-found", for: "profile-search" });
  let awaitsSecond = false;
  const redo = () => {
    const { chosen, base } = model;
    const line = (name: string, choice: Choice) => h("p", { class: "lead" }, base && h("span", { class: "faint" }, `${name} `), `${choiceWords(model, choice)}: ${totalWords(model, choice)}`);
    range.replaceChildren(line("Chosen", chosen), ...(base ? [line("Base", base)] : []));
    whole.hidden = chosen.range === null && (!model.isPair || base?.range == null);
    rest.hidden = model.isPair || chosen.range === null || base?.rest === true;
    second.hidden = model.isPair || chosen.range === null;
    end.hidden = model.isPair || base === null;
    measures.hidden = base === null || !profiles.sides.every((side) => side.has_times);
    key.hidden = base === null;
    parts.show();
    search();
  };
  const search = () => {
    const share = parts.find();
    found.textContent = model.query.trim() === "" ? "" : model.matches!.includes(1) ? `${percent(share)} of the selection` : "No match";
  };
  const pick = (side: number, picked: [number, number] | null, isSecond: boolean) => {
    const made: Choice = { side, range: picked, rest: false };
    if (model.isPair) {
      if (side === 0) model.base = made;
      else model.chosen = made;
    } else if (picked && (isSecond || awaitsSecond) && model.chosen.range) model.base = made;
    else {
      model.chosen = made;
      if (picked === null) model.base = null;
      else if (model.base?.rest) model.base = { ...made, rest: true };
    }
    wait(false);
    map.mark();
    redo();
  };
  const wait = (waits: boolean) => {
    awaitsSecond = waits;
    second.setAttribute("aria-pressed", String(waits));
    second.textContent = waits ? "Drag over the range to compare with" : "Compare with another range";
  };
  const map = maps(model, pick);
  whole.addEventListener("click", () => {
    if (model.isPair) model.base = { side: 0, range: null, rest: false };
    pick(model.chosen.side, null, false);
  });
  rest.addEventListener("click", () => {
    model.base = { ...model.chosen, rest: true };
    wait(false);
    map.mark();
    redo();
  });
  second.addEventListener("click", () => wait(!awaitsSecond));
  end.addEventListener("click", () => {
    model.base = null;
    map.mark();
    redo();
  });
  const query = h("input", { type: "search", id: "profile-search", placeholder: "Search function or file", title: "Text, or a regular expression", "aria-label": "Search function or file by text or a regular expression: colours cells and boxes", autocomplete: "off", spellcheck: "false" });
  query.addEventListener("input", () => {
    model.query = query.value;
    map.recolor();
    search();
  });
  const changed = () => {
    map.redraw();
    redo();
  };
  const key = h("ul", { class: "legend", id: "profile-key" }, h("li", {}, h("span", { class: "swatch grew" }), "more in what is chosen"), h("li", {}, h("span", { class: "swatch shrank" }), "less, or vanished"), h("li", { class: "faint" }, "pale: within the sampling error"));
  const isTimed = profiles.sides.some((side) => side.has_times);
  redo();
  return h(
    "div",
    { class: "explorer" },
    filters(model, events, changed),
    h("div", { class: "tools" }, query, found, h("span", { class: "spring" }), isTimed && map.scales),
    isTimed ? map.element : h("p", { class: "absent" }, "Not in this recording: its samples have no times, so there is no heat map and no range to choose."),
    h("div", { class: "tools below" }, range, h("span", { class: "spring" }), measures, rest, second, end, whole),
    key,
    parts.element,
  );
}
