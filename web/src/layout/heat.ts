/**
 * Heat map of samples over time, in FlameScope's layout: a column is a stretch of whole seconds
 * (or a part of one), a row a part of it, by the recording's own clock, the first row at the
 * bottom. And the stacks of any range of time as a tree.
 */
import type { Decoded } from "../data/profile";
import type { FlameNode } from "../data/types";

export interface Scale {
  /** Length of a column, microseconds. */
  column: number;
  rows: number;
}

export interface Heat {
  scale: Scale;
  columns: number;
  /** Where the first column begins, microseconds since the first moment; not above 0. */
  origin: number;
  /** Weight of each cell, column by column from the bottom. */
  cells: Float64Array;
  /** The part of it that matches a search. */
  matched: Float64Array | null;
  most: number;
  total: number;
}

/** Which samples count. */
export interface Filter {
  event: number;
  /** Index of a thread, or null for all. */
  thread: number | null;
}

/** `start` is the first moment by the recording's clock, microseconds; `marked` says which nodes match a search. */
export function heat(data: Decoded, span: number, start: number, scale: Scale, filter: Filter, marked: Uint8Array | null): Heat {
  const origin = Math.floor(start / scale.column) * scale.column - start;
  const last = Math.max(span, data.times.length > 0 ? data.times[data.times.length - 1]! + 1 : 1);
  const columns = Math.max(1, Math.ceil((last - origin) / scale.column));
  const cells = new Float64Array(columns * scale.rows);
  const matched = marked ? new Float64Array(cells.length) : null;
  const height = scale.column / scale.rows;
  let [most, total] = [0, 0];
  for (let at = 0; at < data.times.length; at += 1) {
    if (data.events[at] !== filter.event || (filter.thread !== null && data.threads[at] !== filter.thread)) continue;
    const cell = Math.min(cells.length - 1, Math.floor((data.times[at]! - origin) / height));
    const weight = data.weights[at]!;
    cells[cell]! += weight;
    total += weight;
    if (matched && marked![data.stacks[at]!]) matched[cell]! += weight;
  }
  for (const cell of cells) most = Math.max(most, cell);
  return { scale, columns, origin, cells, matched, most, total };
}

/** First index whose time is not below `time`. */
export function lowerBound(times: Float64Array, time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Time range of the cells from one to another, both included, microseconds. */
export function rangeOf(heat: Heat, a: number, b: number): [from: number, to: number] {
  const height = heat.scale.column / heat.scale.rows;
  return [heat.origin + Math.min(a, b) * height, heat.origin + (Math.max(a, b) + 1) * height];
}

export interface Weights {
  /** With everything below, for each node; the root's is the whole. */
  totals: Float64Array;
  samples: number;
}

/** Weights of all nodes within a range of time: the samples of the range, rolled up to their callers. */
export function weigh(data: Decoded, [from, to]: [number, number], filter: Filter): Weights {
  const totals = new Float64Array(data.parents.length);
  let samples = 0;
  const end = lowerBound(data.times, to);
  for (let at = lowerBound(data.times, from); at < end; at += 1) {
    if (data.events[at] !== filter.event || (filter.thread !== null && data.threads[at] !== filter.thread)) continue;
    totals[data.stacks[at]!]! += data.weights[at]!;
    samples += 1;
  }
  for (let node = totals.length - 1; node > 0; node -= 1) totals[data.parents[node]!]! += totals[node]!;
  return { totals, samples };
}

/** The nodes with weight as a tree, siblings by name. */
export function treeOf(data: Decoded, totals: Float64Array, name: (frame: number) => [name: string, module: string]): FlameNode {
  const nodes = new Map<number, FlameNode>();
  const root: FlameNode = { name: "all", module: "", total: totals[0] ?? 0, children: [] };
  nodes.set(0, root);
  for (let node = 1; node < totals.length; node += 1) {
    if (!(totals[node]! > 0)) continue;
    const [text, module] = name(data.frames[node]!);
    const made: FlameNode = { name: text, module, total: totals[node]!, children: [] };
    nodes.set(node, made);
    nodes.get(data.parents[node]!)?.children.push(made);
  }
  for (const made of nodes.values()) made.children.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  return root;
}

/** Nodes that match a search, or stand below one that does. */
export function marked(data: Decoded, frames: [string, number][], query: string): Uint8Array | null {
  const needle = query.trim().toLowerCase();
  if (needle === "") return null;
  const matches = frames.map(([name]) => name.toLowerCase().includes(needle));
  const found = new Uint8Array(data.parents.length);
  for (let node = 1; node < found.length; node += 1) found[node] = matches[data.frames[node]!] || found[data.parents[node]!] ? 1 : 0;
  return found;
}
