/**
 * Heat map of samples over time, in FlameScope's layout: a column is a stretch of whole seconds (or
 * a part of one), a row is a part of it, by the recording's own clock, the first row at the bottom.
 */
import type { Side } from "../data/profile";
import type { Range, Slice } from "./slice";

export interface Scale {
  /** Length of a column, nanoseconds. */
  column: number;
  rows: number;
}

export interface Heat {
  scale: Scale;
  columns: number;
  /** Where the first column begins, ticks since the first moment; not above 0. */
  origin: number;
  /** Ticks per row. */
  height: number;
  /** Weight of each cell, column by column from the bottom. */
  cells: Float64Array;
  /** The part of it that matches a search. */
  matched: Float64Array | null;
  most: number;
  total: number;
  /** Weights at the two ends of the colours. */
  pale: number;
  strong: number;
}

/** `marked` contains which leaves of the slice's track match a search. */
export function heat({ side, track }: Slice, scale: Scale, marked: Uint8Array | null): Heat {
  const height = Math.max(1, scale.column / scale.rows / side.tick_ns);
  const origin = (Math.floor(side.start_ns / scale.column) * scale.column - side.start_ns) / side.tick_ns;
  const columns = columnsOf(side, origin, height * scale.rows);
  const cells = new Float64Array(columns * scale.rows);
  const matched = marked ? new Float64Array(cells.length) : null;
  const { times, stacks, weight, count } = track;
  const last = cells.length - 1;
  for (let at = 0; at < count; at += 1) {
    const cell = Math.min(last, ((times[at]! - origin) / height) | 0);
    const w = typeof weight === "number" ? weight : weight[at]!;
    cells[cell]! += w;
    if (matched && marked![stacks[at]!] === 1) matched[cell]! += w;
  }
  let [most, total] = [0, 0];
  for (const cell of cells) {
    most = Math.max(most, cell);
    total += cell;
  }
  return { scale, columns, origin, height, cells, matched, most, total, ...ends(cells) };
}

/**
 * `strong` is the weight reached by one in a hundred of the cells with samples: a single cell must
 * not make the others look pale. If all cells are heavy, `pale` is the weight reached by all but
 * one in a hundred; otherwise they would look alike.
 */
function ends(cells: Float64Array): { pale: number; strong: number } {
  const filled = cells.filter((weight) => weight > 0).sort();
  const of = (share: number): number => filled[Math.floor((filled.length - 1) * share)] ?? 1;
  const [low, strong] = [of(0.01), of(0.99)];
  return { pale: low > 0.5 * strong && low < strong ? low : 0, strong };
}

function columnsOf(side: Side, origin: number, width: number): number {
  const lasts = side.tracks.map((track) => (track.count > 0 ? track.times[track.count - 1]! + 1 : 1));
  const last = Math.max(side.span_ns / side.tick_ns, ...lasts);
  return Math.max(1, Math.ceil((last - origin) / width));
}

/** Time range of the cells from one to another, both included. */
export function rangeOf(heat: Heat, a: number, b: number): [from: number, to: number] {
  return [heat.origin + Math.min(a, b) * heat.height, heat.origin + (Math.max(a, b) + 1) * heat.height];
}

/** The cells that a time range touches; null if it is the whole or is outside. */
export function cellsOf(heat: Heat, range: Range): [from: number, to: number] | null {
  if (!range) return null;
  const cell = (tick: number) => Math.floor((tick - heat.origin) / heat.height + 1e-9);
  const [from, to] = [Math.max(0, cell(range[0])), Math.min(heat.cells.length - 1, Math.ceil((range[1] - heat.origin) / heat.height - 1e-9) - 1)];
  return from <= to ? [from, to] : null;
}

/** Lengths of columns and rows to choose from, nanoseconds. */
export const COLUMNS = [1e7, 2e7, 5e7, 1e8, 2e8, 5e8, 1e9, 2e9, 5e9, 1e10, 6e10, 6e11];
export const ROWS = [1e6, 2e6, 5e6, 1e7, 2e7, 5e7, 1e8, 1e9, 1e10];
/** Largest number of rows in a map: more could not be distinguished. */
const MOST_ROWS = 1000;
/** Rows of a map, unless the reader chooses. */
const USUAL_ROWS = 50;
/** Fewest columns of a map, unless the recording is shorter than as many of the shortest. */
const FEWEST_COLUMNS = 20;
/** Most columns of a map. */
const MOST_COLUMNS = 400;

/** Rows that go with a column. */
export const rowsFor = (column: number): number[] => ROWS.filter((row) => column / row >= 2 && column / row <= MOST_ROWS);

/**
 * FlameScope's one second by 20 ms if the recording lasts between 20 seconds and a few minutes;
 * other lengths for other recordings.
 */
export function usualScale(span: number): Scale {
  const fitting = span < FEWEST_COLUMNS * 1e9 ? [...COLUMNS].reverse().find((length) => span / length >= FEWEST_COLUMNS) : COLUMNS.find((length) => length >= 1e9 && span / length <= MOST_COLUMNS);
  const column = fitting ?? (span < 1e9 ? COLUMNS[0]! : COLUMNS.at(-1)!);
  const row = ROWS.find((length) => column / length <= USUAL_ROWS) ?? ROWS.at(-1)!;
  return { column, rows: Math.max(1, Math.round(column / row)) };
}
