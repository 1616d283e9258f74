/**
 * The map of call paths as a diagram: what is unfolded, and where each box goes.
 *
 * Columns are levels of calls, rows follow the order in which calls are first made. A box is level
 * with its first callee, so that unfolding moves only what is below.
 */
import type { Call, CallTree } from "./callTree";
import { matcher } from "./search";

/** A box: a call, or the small calls of a caller together. */
export interface PatternBox {
  key: string;
  call: Call;
  /**
   * Small calls of `call` that are not shown individually; empty if the box stands for the call
   * itself.
   */
  small: Call[];
  parent: PatternBox | null;
  column: number;
  row: number;
  /** Children that are folded away. */
  hidden: number;
}

export interface PatternMap {
  boxes: PatternBox[];
  columns: number;
  rows: number;
}

export interface Unfolding {
  /** Calls whose children are shown. */
  open: Set<Call>;
  /** Callers whose small calls are shown individually. */
  openSmall: Set<Call>;
  /** Share of the faults and of the time below which a call is small. */
  least: number;
}

/** Rows and levels that the first view may fill. */
const FIRST_ROWS = 15;
const FIRST_LEVELS = 4;
/** Paths taken by fewer faults and less of the time stay folded at first. */
const FIRST_SHARE = 0.01;

/** What to show at first: the paths that take most of the time. */
export function mainPaths(tree: CallTree): Unfolding {
  const unfolding: Unfolding = { open: new Set(tree.roots), openSmall: new Set(), least: 0.02 };
  const closed = () => layoutPatterns(tree, unfolding).boxes.filter((box) => box.small.length === 0 && box.hidden > 0 && box.column < FIRST_LEVELS);
  const refused = new Set<Call>();
  for (;;) {
    const next = closed()
      .map((box) => box.call)
      .filter((call) => !refused.has(call) && (timeShare(tree, call) >= FIRST_SHARE || call.faults >= FIRST_SHARE * tree.faults))
      .sort((a, b) => timeShare(tree, b) - timeShare(tree, a))[0];
    if (!next) return unfolding;
    unfolding.open.add(next);
    if (layoutPatterns(tree, unfolding).rows <= FIRST_ROWS) continue;
    unfolding.open.delete(next);
    refused.add(next);
  }
}

/** Share of the corrected time, or of the raw time if nothing is left. */
export const timeShare = (tree: CallTree, call: Call): number =>
  tree.correctedTotal > 0 ? call.correctedTotal / tree.correctedTotal : tree.total > 0 ? call.total / tree.total : 0;

/** A call whose time is small even if it is frequent: bookkeeping along the path. */
export const isSmall = (tree: CallTree, call: Call, least: number): boolean =>
  timeShare(tree, call) < least && (call.children.length === 0 || call.faults < least * tree.faults || timeShare(tree, call) < least / 4);

export function layoutPatterns(tree: CallTree, unfolding: Unfolding): PatternMap {
  const boxes: PatternBox[] = [];
  let rows = 0;
  let columns = 0;
  const put = (call: Call, small: Call[], parent: PatternBox | null, column: number, row: number): PatternBox => {
    const box: PatternBox = { key: small.length > 0 ? `${call.id}+` : String(call.id), call, small, parent, column, row, hidden: 0 };
    boxes.push(box);
    columns = Math.max(columns, column + 1);
    rows = Math.max(rows, row + 1);
    return box;
  };
  /** Places a call and everything unfolded below it; returns the first free row. */
  const place = (call: Call, parent: PatternBox | null, column: number, row: number): number => {
    const box = put(call, [], parent, column, row);
    if (!unfolding.open.has(call)) {
      box.hidden = call.children.length;
      return row + 1;
    }
    const showsAll = unfolding.openSmall.has(call);
    const small = showsAll ? [] : call.children.filter((child) => isSmall(tree, child, unfolding.least));
    const few = small.length > 1 ? small : [];
    let next = row;
    for (const child of call.children) if (!few.includes(child)) next = place(child, box, column + 1, next);
    if (few.length > 0) {
      put(call, few, box, column + 1, next);
      next += 1;
    }
    return Math.max(next, row + 1);
  };
  let row = 0;
  for (const root of tree.roots) row = place(root, null, 0, row);
  return { boxes, columns, rows };
}

/** Unfolds the path to every call whose name matches `query`; returns those calls. */
export function findCalls(tree: CallTree, unfolding: Unfolding, query: string): Call[] {
  const matches = matcher(query);
  if (!matches) return [];
  const found = tree.calls.filter((call) => matches(call.name));
  for (const call of found) {
    for (let up = call.parent, below: Call = call; up; below = up, up = up.parent) {
      unfolding.open.add(up);
      if (isSmall(tree, below, unfolding.least)) unfolding.openSmall.add(up);
    }
  }
  return found;
}
