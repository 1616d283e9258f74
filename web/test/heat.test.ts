import { expect, test } from "vitest";
import { varints, type Decoded } from "../src/data/profile";
import { heat, lowerBound, marked, rangeOf, treeOf, weigh } from "../src/layout/heat";

/** Two stacks, main → a and main → b → c, over ten seconds. */
function profile(samples: number): Decoded {
  const at = Array.from({ length: samples }, (_, i) => i);
  return {
    times: Float64Array.from(at, (i) => Math.floor((i * 10_000_000) / samples)),
    threads: Uint32Array.from(at, (i) => i % 3),
    events: Uint8Array.from(at, () => 0),
    weights: Float64Array.from(at, (i) => 1 + (i % 5)),
    stacks: Uint32Array.from(at, (i) => (i % 2 === 0 ? 2 : 4)),
    parents: Uint32Array.from([0, 0, 1, 1, 3]),
    frames: Uint32Array.from([0, 0, 1, 2, 3]),
  };
}

const ALL = { event: 0, thread: null };
const SCALE = { column: 1_000_000, rows: 50 };
const FRAMES: [string, number][] = [["main", 0], ["a", 0], ["b", 0], ["c", 0]];

test("cells hold every sample's weight once", () => {
  const data = profile(5000);
  const map = heat(data, 10_000_000, 123_456_789, SCALE, ALL, null);
  const whole = data.weights.reduce((sum, weight) => sum + weight, 0);
  expect(map.cells.reduce((sum, cell) => sum + cell, 0)).toBe(whole);
  expect(map.total).toBe(whole);
  // FlameScope: the row is the part of the absolute second.
  expect(map.origin).toBe(-456_789);
  expect(map.columns).toBe(11);
});

test("a range and its complement are the whole", () => {
  const data = profile(4999);
  const map = heat(data, 10_000_000, 0, SCALE, ALL, null);
  const [from, to] = rangeOf(map, 120, 77);
  expect([from, to]).toEqual([77 * 20_000, 121 * 20_000]);
  const part = weigh(data, [from, to], ALL);
  const rest = [weigh(data, [0, from], ALL), weigh(data, [to, Infinity], ALL)];
  expect(part.totals[0]! + rest[0]!.totals[0]! + rest[1]!.totals[0]!).toBe(map.total);
  const cells = map.cells.slice(77, 121).reduce((sum, cell) => sum + cell, 0);
  expect(part.totals[0]).toBe(cells);
  expect(part.samples + rest[0]!.samples + rest[1]!.samples).toBe(4999);
});

test("the tree of a range weighs what its samples do", () => {
  const data = profile(1000);
  const tree = treeOf(data, weigh(data, [0, 5_000_000], ALL).totals, (frame) => [FRAMES[frame]![0], ""]);
  expect(tree.children.map((child) => child.name)).toEqual(["main"]);
  const [main] = tree.children;
  expect(main!.children.map((child) => child.name)).toEqual(["a", "b"]);
  expect(main!.total).toBe(main!.children[0]!.total + main!.children[1]!.total);
});

test("a search marks what stands below its matches", () => {
  const data = profile(10);
  expect([...marked(data, FRAMES, "B")!]).toEqual([0, 0, 0, 1, 1]);
  expect(marked(data, FRAMES, " ")).toBeNull();
  const map = heat(data, 10_000_000, 0, SCALE, ALL, marked(data, FRAMES, "main"));
  expect([...map.matched!]).toEqual([...map.cells]);
});

test("threads are told apart", () => {
  const data = profile(999);
  const parts = [0, 1, 2].map((thread) => weigh(data, [0, Infinity], { event: 0, thread }).totals[0]!);
  expect(parts.reduce((a, b) => a + b, 0)).toBe(weigh(data, [0, Infinity], ALL).totals[0]);
});

test("numbers of any length are read", () => {
  const bytes = Uint8Array.from([0, 127, 0x80, 1, 0xac, 2, 0x80, 0x80, 0x80, 0x80, 0x80, 1]);
  expect([...varints(bytes, new Float64Array(5))]).toEqual([0, 127, 128, 300, 2 ** 35]);
  expect(lowerBound(Float64Array.from([1, 3, 3, 9]), 3)).toBe(1);
});
