/** Flame graph: tree in, rectangles out. Iterative, so that deep recursion can't overflow. */
import type { FlameNode } from "../data/types";

export interface Frame {
  node: FlameNode;
  parent: Frame | null;
  depth: number;
  /** Left edge and width as shares of the root's weight. */
  x: number;
  width: number;
}

/** All frames, parents before children. Children that claim more than their parent are clipped. */
export function frames(root: FlameNode): Frame[] {
  const total = root.total;
  if (!(total > 0)) return [];
  const all: Frame[] = [{ node: root, parent: null, depth: 0, x: 0, width: 1 }];
  for (let at = 0; at < all.length; at += 1) {
    const frame = all[at]!;
    let x = frame.x;
    for (const child of frame.node.children) {
      const width = Math.min(child.total / total, frame.x + frame.width - x);
      if (!(width > 0)) continue;
      all.push({ node: child, parent: frame, depth: frame.depth + 1, x, width });
      x += width;
    }
  }
  return all;
}

export interface Box {
  frame: Frame;
  left: number;
  width: number;
  depth: number;
  /** Whether it lies above the frame that is zoomed to. */
  isAncestor: boolean;
}

/** What is to be drawn `pixels` wide when zoomed to `focus`; boxes below half a pixel are left out. */
export function boxes(all: Frame[], focus: Frame, pixels: number): Box[] {
  const scale = pixels / focus.width;
  const shown: Box[] = [];
  const ancestors = new Set<Frame>();
  for (let up = focus.parent; up; up = up.parent) ancestors.add(up);
  for (const frame of all) {
    const isAncestor = ancestors.has(frame);
    if (!isAncestor && (frame.depth < focus.depth || frame.x + frame.width <= focus.x + 1e-12)) continue;
    if (!isAncestor && frame.x >= focus.x + focus.width - 1e-12) continue;
    const left = isAncestor ? 0 : (frame.x - focus.x) * scale;
    const width = isAncestor ? pixels : frame.width * scale;
    if (width >= 0.5) shown.push({ frame, left, width, depth: frame.depth, isAncestor });
  }
  return shown;
}

export interface Match {
  frames: Set<Frame>;
  /** Share of the root's weight under matching frames, nested matches counted once. */
  share: number;
}

/** Frames whose name or module holds `query`, whatever the case. */
export function search(all: Frame[], query: string): Match {
  const needle = query.trim().toLowerCase();
  const found = new Set<Frame>();
  const covered = new Set<Frame>();
  let share = 0;
  if (needle === "") return { frames: found, share };
  for (const frame of all) {
    const isIn = frame.parent !== null && covered.has(frame.parent);
    const matches =
      frame.node.name.toLowerCase().includes(needle) ||
      frame.node.module.toLowerCase().includes(needle);
    if (matches) found.add(frame);
    if (matches && !isIn) share += frame.width;
    if (matches || isIn) covered.add(frame);
  }
  return { frames: found, share };
}
