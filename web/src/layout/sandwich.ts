/**
 * The callers and callees of a function: all its stacks superimposed from the function on, in both
 * directions.
 */
import type { Amounts } from "./amounts";
import { outermost } from "./amounts";
import { Grower, type Tree } from "./tree";

export interface Half {
  tree: Tree;
  amounts: Amounts;
}

export interface Sandwich {
  callers: Half;
  callees: Half;
}

/** Both trees have the function as their root; `rank` orders siblings. */
export function sandwich(tree: Tree, amounts: Amounts, frame: number, rank: Uint32Array): Sandwich {
  const outer = outermost(tree, rank.length);
  const base = amounts.base;
  const chosen = amounts.chosen ?? amounts.widths;
  const [up, down] = [new Grower(rank.length), new Grower(rank.length)];
  for (let node = 1; node < tree.count; node += 1) {
    if (tree.frames[node] !== frame || outer[node] !== 1 || !(amounts.widths[node]! > 0)) continue;
    const add = (grower: Grower, at: number, of: number) => {
      grower.a[at]! += base?.[of] ?? 0;
      grower.b[at]! += chosen[of]!;
    };
    add(up, 0, node);
    let at = 0;
    for (let caller = tree.parents[node]!; caller !== 0; caller = tree.parents[caller]!) {
      at = up.child(at, tree.frames[caller]!);
      add(up, at, node);
    }
    add(down, 0, node);
    // The position of each open node of the walk in the new tree; one entry per level.
    const places = [0];
    for (let below = node + 1; below < tree.ends[node]!; ) {
      if (!(amounts.widths[below]! > 0)) {
        below = tree.ends[below]!;
        continue;
      }
      const level = tree.depths[below]! - tree.depths[node]!;
      places[level] = down.child(places[level - 1]!, tree.frames[below]!);
      add(down, places[level]!, below);
      below += 1;
    }
  }
  return { callers: half(up, amounts, rank), callees: half(down, amounts, rank) };
}

function half(grower: Grower, amounts: Amounts, rank: Uint32Array): Half {
  const { tree, a, b } = grower.finish(rank);
  const isCompared = amounts.base !== null;
  const widths = isCompared ? a.map((amount, node) => (amount + b[node]!) / 2) : b;
  return { tree, amounts: { ...amounts, widths, base: isCompared ? a : null, chosen: isCompared ? b : null } };
}
