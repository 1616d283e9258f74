/**
 * Trees of stacks as arrays: nodes in preorder, so that everything below a node is the stretch up
 * to its end, and no recursion is needed however deep stacks are.
 */
import type { FlameNode } from "../data/types";
import { matcher } from "./search";

export interface Tree {
  count: number;
  /** Caller of each node; node 0 is the root and its own caller. */
  parents: Uint32Array;
  /** Frame of each node; that of the root is meaningless. */
  frames: Uint32Array;
  /** Index after the last node below each. */
  ends: Uint32Array;
  depths: Uint32Array;
}

/** `ups` contains for each node how many levels its caller is above the previous node. */
export function preorder(ups: Uint32Array, frames: Uint32Array): Tree {
  const count = ups.length;
  const [parents, ends, depths] = [new Uint32Array(count), new Uint32Array(count), new Uint32Array(count)];
  let open = 0;
  for (let node = 1; node < count; node += 1) {
    for (let up = ups[node]!; up > 0; up -= 1) {
      ends[open] = node;
      open = parents[open]!;
    }
    parents[node] = open;
    depths[node] = depths[open]! + 1;
    open = node;
  }
  for (; open !== 0; open = parents[open]!) ends[open] = count;
  ends[0] = count;
  return { count, parents, frames, ends, depths };
}

/** Turns each node's own weight into that of everything below it. */
export function rollUp(tree: Tree, weights: Float64Array): Float64Array {
  const { parents } = tree;
  for (let node = tree.count - 1; node > 0; node -= 1) weights[parents[node]!]! += weights[node]!;
  return weights;
}

/** Nodes whose frame is 1 in `matches`, and everything below them. */
export function below(tree: Tree, matches: Uint8Array): Uint8Array {
  const found = new Uint8Array(tree.count);
  for (let node = 1; node < tree.count; ) {
    if (matches[tree.frames[node]!] === 1) {
      found.fill(1, node, tree.ends[node]!);
      node = tree.ends[node]!;
    } else node += 1;
  }
  return found;
}

/** Frames that match a search by name or file, ignoring case; null for an empty search. */
export function matching(frames: { name: string; module: string }[], query: string): Uint8Array | null {
  const matches = matcher(query);
  return matches && Uint8Array.from(frames, ({ name, module }) => (matches(name) || matches(module) ? 1 : 0));
}

/** A tree that grows by stacks, with weights of the two sides. */
export class Grower {
  readonly parents = [0];
  readonly frames = [0];
  readonly a = [0];
  readonly b = [0];
  private readonly known = new Map<number, number>();

  constructor(private readonly frameCount: number) {}

  child(parent: number, frame: number): number {
    const key = parent * this.frameCount + frame;
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const node = this.parents.length;
    this.known.set(key, node);
    this.parents.push(parent);
    this.frames.push(frame);
    this.a.push(0);
    this.b.push(0);
    return node;
  }

  /** The tree in order, siblings by `rank` of their frames, with both weights of each node. */
  finish(rank: Uint32Array): { tree: Tree; a: Float64Array; b: Float64Array } {
    const below: number[][] = this.parents.map(() => []);
    for (let node = 1; node < this.parents.length; node += 1) below[this.parents[node]!]!.push(node);
    const order: number[] = [];
    const open = [0];
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      order.push(node);
      const next = below[node]!.sort((x, y) => rank[this.frames[y]!]! - rank[this.frames[x]!]!);
      for (const child of next) open.push(child);
    }
    const depths = new Uint32Array(order.length);
    const ups = Uint32Array.from(order, (node, at) => {
      if (at === 0) return 0;
      const depth = depths[this.parents[node]!]! + 1;
      depths[node] = depth;
      return depths[order[at - 1]!]! + 1 - depth;
    });
    const pick = (values: number[]) => Float64Array.from(order, (node) => values[node]!);
    return { tree: preorder(ups, Uint32Array.from(order, (node) => this.frames[node]!)), a: pick(this.a), b: pick(this.b) };
  }
}

/** The ranks of frames by name, so that siblings have the same order everywhere. */
export function ranks(frames: { name: string; module: string }[]): Uint32Array {
  const order = frames.map((_, at) => at).sort((x, y) => compare(frames[x]!.name, frames[y]!.name) || compare(frames[x]!.module, frames[y]!.module));
  const places = new Uint32Array(frames.length);
  order.forEach((frame, place) => (places[frame] = place));
  return places;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** A tree of objects as arrays. Children with more weight than their parent are limited to it. */
export function flatten(root: FlameNode): { tree: Tree; frames: { name: string; module: string }[]; totals: Float64Array } {
  const frames: { name: string; module: string }[] = [];
  const totals: number[] = [];
  const ups: number[] = [];
  let before = -1;
  const open = [{ node: root, depth: 0, most: Math.max(0, root.total) }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, depth, most } = next;
    frames.push({ name: node.name, module: node.module });
    totals.push(most);
    ups.push(before + 1 - depth);
    before = depth;
    let room = most;
    const children = node.children.map((child) => {
      const weight = Math.max(0, Math.min(child.total, room));
      room -= weight;
      return { node: child, depth: depth + 1, most: weight };
    });
    for (const child of children.reverse()) if (child.most > 0) open.push(child);
  }
  return { tree: preorder(Uint32Array.from(ups), Uint32Array.from(frames, (_, at) => at)), frames, totals: Float64Array.from(totals) };
}
