/** Heat maps of all sides with their time series, and the ranges chosen on them. */
import { h } from "../../dom";
import { heatKey, heatView, type Cells, type HeatView } from "../../draw/heat";
import { lanesView, type LanesView } from "../../draw/lanes";
import { axisNanos, nanos, percent } from "../../format";
import type { Explorer } from "../../layout/explorer";
import { cellsOf, COLUMNS, rangeOf, rowsFor, usualScale, type Heat, type Scale } from "../../layout/heat";
import { counterLanes, eventLane, type Lane } from "../../layout/lanes";
import { weightWords } from "./words";

export interface Maps {
  element: HTMLElement;
  /** Lists of lengths of columns and rows. */
  scales: HTMLElement;
  /** Redraws after a change of filter, event, scale or search. */
  redraw: () => void;
  /** Redraws the search. */
  recolor: () => void;
  /** Marks the chosen ranges. */
  mark: () => void;
}

interface Map {
  at: number;
  heat: Heat;
  view: HeatView;
  lanes: LanesView;
  key: HTMLElement;
}

/** `picked` is called with a range of a side; with `second`, it is the one to compare with. */
export function maps(explorer: Explorer, picked: (side: number, range: [number, number] | null, second: boolean) => void): Maps {
  const longest = Math.max(...explorer.profiles.sides.map((side) => side.span_ns));
  const state: { scale: Scale } = { scale: usualScale(longest) };
  const place = h("div", { class: explorer.isPair ? "pair-maps" : "" });
  let shown: Map[] = [];
  const build = () => {
    shown = explorer.profiles.sides.flatMap((side, at) => {
      const heat = side.has_times ? explorer.heat(at, state.scale) : null;
      return heat ? [mapOf(explorer, at, heat, picked)] : [];
    });
    const heads = explorer.profiles.sides.map((side, at) => (explorer.isPair ? h("h3", {}, `${at === 0 ? "A" : "B"}: ${side.name}`) : null));
    const absent = (at: number) => h("p", { class: "absent" }, explorer.profiles.sides[at]!.has_times ? "It has no samples of this event." : "Its samples have no times.");
    place.replaceChildren(...explorer.profiles.sides.map((_, at) => {
      const map = shown.find((map) => map.at === at);
      return h("div", { class: "map" }, heads[at], ...(map ? [map.view.element, map.key, map.lanes.element] : [absent(at)]));
    }));
    mark();
  };
  const mark = () => {
    for (const map of shown) {
      const cells = (choice: Explorer["base"]): Cells | null => (choice && choice.side === map.at && !(choice.rest && choice === explorer.base) ? cellsOf(map.heat, choice.range) : null);
      map.view.select(cells(explorer.chosen), cells(explorer.base));
      map.lanes.select(cells(explorer.chosen));
    }
  };
  const recolor = () => {
    for (const map of shown) {
      const heat = explorer.heat(map.at, state.scale);
      if (!heat) continue;
      map.view.show((map.heat = heat));
      const key = keyOf(explorer, heat);
      map.key.replaceWith(key);
      map.key = key;
    }
    mark();
  };
  build();
  return { element: place, scales: scaleLists(state, longest, build), redraw: build, recolor, mark };
}

function mapOf(explorer: Explorer, at: number, heat: Heat, picked: (side: number, range: [number, number] | null, second: boolean) => void): Map {
  const side = explorer.profiles.sides[at]!;
  const map = { at, heat } as Map;
  map.view = heatView(heat, explorer.isPair ? `Samples of ${at === 0 ? "A" : "B"} over time` : "Samples over time", {
    chosen: (cells, second) => picked(at, cells && rangeOf(map.heat, cells[0], cells[1]), second),
    words: (cell) => {
      const [from, to] = rangeOf(map.heat, cell, cell);
      const { cells, matched } = map.heat;
      const weight = cells[cell] ?? 0;
      const found = matched ? [`${weightWords(explorer, matched[cell] ?? 0)} match, ${percent(weight > 0 ? (matched[cell] ?? 0) / weight : 0)}`] : [];
      return [weightWords(explorer, weight), `${nanos(Math.max(0, from * side.tick_ns))} to ${nanos(Math.max(0, to * side.tick_ns))}`, ...found];
    },
    hover: (column) => map.lanes.hover(column),
  });
  map.key = keyOf(explorer, heat);
  map.lanes = lanesView(heat);
  map.lanes.show(heat, lanesOf(explorer, at, heat));
  return map;
}

const keyOf = (explorer: Explorer, heat: Heat): HTMLElement => heatKey(heat, (weight) => weightWords(explorer, weight), `Per ${axisNanos(heat.scale.column / heat.scale.rows)}`);

/** Number of parts of columns that a time series distinguishes. */
const PARTS = 500;

/**
 * The event itself, the other events, the counters; of these, series that were never above 0 are
 * left out.
 */
function lanesOf(explorer: Explorer, at: number, heat: Heat): Lane[] {
  const side = explorer.profiles.sides[at]!;
  const parts = Math.max(1, Math.min(10, heat.scale.rows, Math.floor(PARTS / heat.columns)));
  const names = [explorer.event, ...side.tracks.map((track) => track.event).filter((event) => event !== explorer.event)];
  const events = names.flatMap((name) => explorer.slice(at, name) ?? []).map((slice) => eventLane(slice, heat, parts));
  const counters = counterLanes(side.counters, side.tick_ns, heat, parts);
  const isKnown = (name: string) => events.some((lane) => lane.name.split(":")[0] === name);
  return [...events, ...counters.filter((lane) => !isKnown(lane.name))].filter((lane, index) => index === 0 || lane.most > 0);
}

/** Lists of the lengths of columns and of rows. */
function scaleLists(state: { scale: Scale }, longest: number, changed: () => void): HTMLElement {
  const columns = COLUMNS.filter((column) => column === state.scale.column || (longest / column <= 4000 && longest / column > 0.5));
  const option = (length: number, chosen: number, what: string) => h("option", { value: length, selected: length === chosen }, `${axisNanos(length)} ${what}`);
  const row = h("select", { id: "profile-row", "aria-label": "Length of a row" });
  const column = h("select", { id: "profile-column", "aria-label": "Length of a column" }, ...columns.map((length) => option(length, state.scale.column, "columns")));
  const fillRows = () => row.replaceChildren(...rowsFor(state.scale.column).map((length) => option(length, state.scale.column / state.scale.rows, "rows")));
  fillRows();
  column.addEventListener("change", () => {
    const length = Number(column.value);
    const usual = rowsFor(length).filter((row) => length / row <= 60);
    state.scale = { column: length, rows: Math.round(length / (usual[0] ?? length)) };
    fillRows();
    changed();
  });
  row.addEventListener("change", () => {
    state.scale = { ...state.scale, rows: Math.round(state.scale.column / Number(row.value)) };
    changed();
  });
  return h("span", { class: "scales" }, column, row);
}
