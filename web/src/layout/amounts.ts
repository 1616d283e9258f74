/** The amounts shown for a choice of samples: of one side, or of two that are compared. */
import type { Weights } from "./slice";
import type { Tree } from "./tree";

/** How amounts of two sides are made comparable: by time, or as shares of each side's samples. */
export type Measure = "rate" | "share";

export interface Amounts {
  /** The widths of boxes: the side's weight, or the mean of both amounts. */
  widths: Float64Array;
  /** The amounts of the base and of the chosen side, if two are compared. */
  base: Float64Array | null;
  chosen: Float64Array | null;
  measure: Measure;
  samples: [base: number, chosen: number];
}

export function single(weights: Weights): Amounts {
  return { widths: weights.totals, base: null, chosen: null, measure: "rate", samples: [0, weights.samples] };
}

/** Frames that only one side has remain visible: widths are the mean of both. */
export function difference(base: Weights, chosen: Weights, measure: Measure): Amounts {
  const scaled = ({ totals, span }: Weights) => {
    const by = measure === "rate" ? span : totals[0]! || 1;
    return totals.map((weight) => weight / by);
  };
  const [a, b] = [scaled(base), scaled(chosen)];
  return { widths: a.map((amount, node) => (amount + b[node]!) / 2), base: a, chosen: b, measure, samples: [base.samples, chosen.samples] };
}

/** How a node differs. */
export interface Change {
  a: number;
  b: number;
  /** From -1 (vanished) through 0 (unchanged) to 1 (new). */
  relative: number;
  /** The change in standard errors, from the scatter of sample counts. */
  errors: number;
}

export function changeOf(a: number, b: number, whole: [number, number], samples: [number, number]): Change {
  const most = Math.max(a, b);
  // A node with a share s of n samples has s·n of them, and scatters by its square root; a node
  // without samples, by that of one.
  const error = (amount: number, all: number, n: number) => (n > 0 && all > 0 ? (Math.sqrt(Math.max(1, (amount / all) * n)) / n) * all : 0);
  const sigma = Math.hypot(error(a, whole[0], samples[0]), error(b, whole[1], samples[1]));
  return { a, b, relative: most > 0 ? (b - a) / most : 0, errors: sigma > 0 ? (b - a) / sigma : 0 };
}

/** Functions' own and total amounts. A recursive function counts once per stack. */
export interface FunctionRow {
  frame: number;
  own: [base: number, chosen: number];
  total: [base: number, chosen: number];
}

export function functions(tree: Tree, frames: number, amounts: Amounts): FunctionRow[] {
  const outer = outermost(tree, frames);
  const columns = [amounts.base, amounts.chosen ?? amounts.widths].map((totals) => {
    const [own, total] = [new Float64Array(frames), new Float64Array(frames)];
    if (totals) {
      const self = totals.slice();
      for (let node = tree.count - 1; node > 0; node -= 1) {
        self[tree.parents[node]!]! -= totals[node]!;
        if (outer[node] === 1) total[tree.frames[node]!]! += totals[node]!;
      }
      for (let node = 1; node < tree.count; node += 1) own[tree.frames[node]!]! += Math.max(0, self[node]!);
    }
    return { own, total };
  });
  const [a, b] = columns as [(typeof columns)[0], (typeof columns)[0]];
  const rows: FunctionRow[] = [];
  for (let frame = 0; frame < frames; frame += 1) {
    const total: [number, number] = [a.total[frame]!, b.total[frame]!];
    if (total[0] > 0 || total[1] > 0) rows.push({ frame, own: [a.own[frame]!, b.own[frame]!], total });
  }
  return rows;
}

/**
 * For each node, 1 if its frame does not occur above it: one walk that counts the frames on the
 * way.
 */
export function outermost(tree: Tree, frames: number): Uint8Array {
  const outer = new Uint8Array(tree.count);
  const onWay = new Uint32Array(frames);
  let open = 0;
  for (let node = 1; node < tree.count; node += 1) {
    for (; open !== tree.parents[node]; open = tree.parents[open]!) onWay[tree.frames[open]!]! -= 1;
    if (onWay[tree.frames[node]!]!++ === 0) outer[node] = 1;
    open = node;
  }
  return outer;
}
