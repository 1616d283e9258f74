import { expect, test } from "vitest";
import { changeOf, difference, functions, outermost, single } from "../src/layout/amounts";
import { Explorer } from "../src/layout/explorer";
import { sandwich } from "../src/layout/sandwich";
import { Grower, ranks } from "../src/layout/tree";
import { profiles } from "./profile";

const names = ["main", "walk", "leaf"].map((name) => ({ name, module: "" }));

/** main → walk → walk → leaf (3), main → leaf (2), main → walk → leaf (1). */
function recursive() {
  const grower = new Grower(names.length);
  const put = (weight: number, ...stack: number[]) => {
    let node = 0;
    grower.b[0]! += weight;
    for (const frame of stack) {
      node = grower.child(node, frame);
      grower.b[node]! += weight;
    }
  };
  put(3, 0, 1, 1, 2);
  put(2, 0, 2);
  put(1, 0, 1, 2);
  const { tree, b } = grower.finish(ranks(names));
  return { tree, amounts: single({ totals: b, samples: 6, span: 1 }) };
}

test("a function that calls itself counts once a stack", () => {
  const { tree, amounts } = recursive();
  const rows = functions(tree, names.length, amounts).map(({ frame, own, total }) => [names[frame]!.name, own[1], total[1]]);
  expect(rows).toEqual([["main", 0, 6], ["walk", 0, 4], ["leaf", 6, 6]]);
  expect([...outermost(tree, names.length)].filter((outer) => outer === 1)).toHaveLength(5);
});

test("callers and callees hold all stacks through a function, once each", () => {
  const { tree, amounts } = recursive();
  const { callers, callees } = sandwich(tree, amounts, 1, ranks(names));
  const told = ({ tree, amounts }: typeof callers) => [...tree.frames].slice(1).map((frame, at) => [names[frame]!.name, tree.depths[at + 1], amounts.widths[at + 1]]);
  expect(told(callers)).toEqual([["main", 1, 4]]);
  expect(told(callees)).toEqual([["leaf", 1, 1], ["walk", 1, 3], ["leaf", 2, 3]]);
  expect([callers.amounts.widths[0], callees.amounts.widths[0]]).toEqual([4, 4]);
});

test("differences are by time or by share, and what vanished stays visible", () => {
  const weights = (totals: number[], span: number) => ({ totals: Float64Array.from(totals), samples: 100, span });
  const by = difference(weights([10, 10, 0], 10), weights([40, 0, 40], 20), "rate");
  expect([[...by.base!], [...by.chosen!], [...by.widths]]).toEqual([[1, 1, 0], [2, 0, 2], [1.5, 0.5, 1]]);
  const share = difference(weights([10, 10, 0], 10), weights([40, 0, 40], 20), "share");
  expect([...share.widths]).toEqual([1, 0.5, 0.5]);
});

test("small changes are told from chance", () => {
  expect(changeOf(0.5, 0.505, [1, 1], [1000, 1000]).errors).toBeLessThan(1);
  expect(changeOf(0.5, 0.6, [1, 1], [10_000, 10_000]).errors).toBeGreaterThan(5);
  expect(changeOf(0.1, 0, [1, 1], [1000, 1000])).toMatchObject({ relative: -1 });
  expect(changeOf(0, 0, [1, 1], [10, 10])).toMatchObject({ relative: 0, errors: 0 });
});

test("two profiles alike differ in nothing; one of them twice as long neither", () => {
  const model = new Explorer(profiles(2000, 1, 2), "cpu-clock");
  const { base, chosen } = model.amounts();
  expect([...base!]).toEqual([...chosen!]);
  expect([model.chosen.side, model.base!.side]).toEqual([1, 0]);
});

test("a range against the rest of its recording", () => {
  const model = new Explorer(profiles(2000, 1), "cpu-clock");
  model.idle = true;
  model.chosen = { side: 0, range: [0, 250_000], rest: false };
  model.base = { ...model.chosen, rest: true };
  const { base, chosen } = model.amounts();
  expect(chosen![0]! * 2.5e9 + base![0]! * 7.5e9).toBeCloseTo(2000, 6);
});
