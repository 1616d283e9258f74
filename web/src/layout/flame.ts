/** Flame graph: the parts of a tree that are wide enough to be seen, and their positions. */
import type { Tree } from "./tree";

export interface Box {
  node: number;
  left: number;
  width: number;
  depth: number;
  /** Whether it is a caller of the zoomed frame. */
  isAncestor: boolean;
}

/** Boxes narrower than this are not drawn, pixels. */
const LEAST = 0.5;

/**
 * The boxes to draw `pixels` wide when zoomed to `focus`. The cost depends on what is visible, not
 * on the size of the tree.
 */
export function boxes(tree: Tree, totals: Float64Array, focus: number, pixels: number): Box[] {
  const shown: Box[] = [];
  for (let up = focus; up !== 0; ) {
    up = tree.parents[up]!;
    shown.push({ node: up, left: 0, width: pixels, depth: tree.depths[up]!, isAncestor: true });
  }
  shown.reverse();
  const scale = totals[focus]! > 0 ? pixels / totals[focus]! : 0;
  if (scale === 0) return shown;
  // Where the next child of each open node begins; one entry for each level below the focus.
  const next = [0];
  const bottom = tree.depths[focus]!;
  for (let node = focus; node < tree.ends[focus]!; ) {
    const level = tree.depths[node]! - bottom;
    const width = totals[node]! * scale;
    const left = next[level]!;
    next[level] = left + width;
    if (width < LEAST) {
      node = tree.ends[node]!;
      continue;
    }
    shown.push({ node, left, width, depth: tree.depths[node]!, isAncestor: false });
    next[level + 1] = left;
    node += 1;
  }
  return shown;
}

export interface Match {
  /** For each frame, 1 if it matches; null without a search. */
  frames: Uint8Array | null;
  /** Nodes with weight that match. */
  count: number;
  /** Share of the whole under matching nodes, nested matches counted once. */
  share: number;
}

export function search(tree: Tree, totals: Float64Array, frames: Uint8Array | null): Match {
  if (!frames) return { frames, count: 0, share: 0 };
  let [count, weight, covered] = [0, 0, 0];
  for (let node = 1; node < tree.count; node += 1) {
    if (frames[tree.frames[node]!] !== 1 || !(totals[node]! > 0)) continue;
    count += 1;
    if (node < covered) continue;
    weight += totals[node]!;
    covered = tree.ends[node]!;
  }
  return { frames, count, share: totals[0]! > 0 ? weight / totals[0]! : 0 };
}

export type Direction = "ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight";

/**
 * The node that an arrow key leads to in an icicle (root on top), if any; nodes without weight are
 * skipped.
 */
export function step(tree: Tree, totals: Float64Array, from: number, key: Direction): number | null {
  if (key === "ArrowUp") return from === 0 ? null : tree.parents[from]!;
  const parent = tree.parents[from]!;
  const family = key === "ArrowDown" ? from : parent;
  if (from === 0 && key !== "ArrowDown") return null;
  let before: number | null = null;
  for (let node = family + 1; node < tree.ends[family]!; node = tree.ends[node]!) {
    if (!(totals[node]! > 0)) continue;
    if (key === "ArrowDown") return node;
    if (key === "ArrowLeft" && node === from) return before;
    if (key === "ArrowRight" && before === from) return node;
    before = node;
  }
  return null;
}
