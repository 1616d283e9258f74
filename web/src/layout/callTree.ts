/** Call paths as trees: the map's nodes joined over kinds of faults, and queries on them. */
import type { Bucket, CallMap } from "../data/faultPaths";
import type { FlameNode } from "../data/types";

/** A call path; equal paths of several kinds of faults are one. */
export interface Call {
  /** Index among all calls of the tree; parents before children. */
  id: number;
  name: string;
  layer: string | null;
  parent: Call | null;
  children: Call[];
  /** Faults on this path, by kind. */
  byClass: Map<string, number>;
  faults: number;
  calls: number;
  callsInside: number;
  total: number;
  correctedTotal: number;
  /** How far that may be off, either way. */
  error: number;
  self: number;
  correctedSelf: number;
  totalByLatency: number;
  times: Bucket[];
  correctedTimes: Bucket[];
}

export interface CallTree {
  /** The outermost functions. */
  roots: Call[];
  calls: Call[];
  faults: number;
  total: number;
  correctedTotal: number;
}

/** The tree of the faults of one kind, or of all for `null`. */
export function callTree(map: CallMap, kind: string | null): CallTree {
  const byNode = new Map<number, Call>();
  const calls: Call[] = [];
  const roots: Call[] = [];
  map.nodes.forEach((node, index) => {
    if (kind !== null && node.class !== kind) return;
    const parent = node.parent === null ? null : (byNode.get(node.parent) ?? null);
    const siblings = parent ? parent.children : roots;
    const name = map.functions[node.function] ?? "";
    let call = siblings.find((sibling) => sibling.name === name);
    if (!call) {
      call = { id: calls.length, name, layer: node.layer, parent, children: [], byClass: new Map(), faults: 0, calls: 0, callsInside: 0, total: 0, correctedTotal: 0, error: 0, self: 0, correctedSelf: 0, totalByLatency: 0, times: [], correctedTimes: [] };
      siblings.push(call);
      calls.push(call);
    }
    byNode.set(index, call);
    call.byClass.set(node.class, (call.byClass.get(node.class) ?? 0) + node.faults);
    call.faults += node.faults;
    call.calls += node.calls;
    call.callsInside += node.calls_inside;
    call.total += node.total_ns;
    call.correctedTotal += node.corrected_total_ns;
    call.error += node.error_ns;
    call.self += node.self_ns;
    call.correctedSelf += node.corrected_self_ns;
    call.totalByLatency += node.total_by_latency;
    call.times = mergeBuckets(call.times, node.times);
    call.correctedTimes = mergeBuckets(call.correctedTimes, node.corrected_times);
  });
  const sum = (of: (call: Call) => number) => roots.reduce((all, call) => all + of(call), 0);
  return { roots, calls, faults: sum((call) => call.faults), total: sum((call) => call.total), correctedTotal: sum((call) => call.correctedTotal) };
}

/** Adds the counts of equal buckets; both in ascending order. */
export function mergeBuckets(a: Bucket[], b: Bucket[]): Bucket[] {
  if (a.length === 0) return b;
  if (b.length === 0) return a;
  const merged: Bucket[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const [left, right] = [a[i], b[j]];
    if (left && right && left[0] === right[0]) {
      merged.push([left[0], left[1], left[2] + right[2]]);
      i += 1;
      j += 1;
    } else if (left && (!right || left[0] < right[0])) {
      merged.push(left);
      i += 1;
    } else if (right) {
      merged.push(right);
      j += 1;
    }
  }
  return merged;
}

/**
 * Share of the variance of the faults' latency that comes with a call's time: its covariance with
 * the latency over the latency's variance. Shares of a call's children and of its own time add up
 * to its share. Raw times; requires a single kind of root, as every tracer provides.
 */
export function varianceShare(tree: CallTree, call: Call): number {
  const n = tree.faults;
  if (n === 0) return 0;
  const squares = tree.roots.reduce((sum, root) => sum + root.totalByLatency, 0);
  const mean = tree.total / n;
  const variance = squares / n - mean * mean;
  const covariance = call.totalByLatency / n - (call.total / n) * mean;
  return variance > 0 ? covariance / variance : 0;
}

/** The outermost call on the path to this one that stands for a layer, or the call's own layer. */
export function layerAround(call: Call): string | null {
  for (let at: Call | null = call; at; at = at.parent) if (at.layer !== null && !OUTER.has(at.layer)) return at.layer;
  return null;
}

/** Layers that contain everything, and thus do not describe a part. */
const OUTER = new Set(["fault", "mm_fault", "handler"]);

/** The same tree for a flame graph, weighted by time. */
export function flameOf(tree: CallTree, kind: "raw" | "corrected", labels: Record<string, string>): FlameNode {
  const build = (call: Call): FlameNode => {
    const layer = layerAround(call);
    return {
      name: call.name,
      module: layer === null ? "" : (labels[layer] ?? layer),
      total: kind === "raw" ? call.total : call.correctedTotal,
      children: call.children.map(build),
    };
  };
  const total = kind === "raw" ? tree.total : tree.correctedTotal;
  return { name: "all faults", module: "", total, children: tree.roots.map(build) };
}

/** Functions from the outermost to this one. */
export function pathTo(call: Call): Call[] {
  const path: Call[] = [];
  for (let at: Call | null = call; at; at = at.parent) path.unshift(at);
  return path;
}
