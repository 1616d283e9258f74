import { expect, test } from "vitest";
import { Explorer } from "../src/layout/explorer";
import { cellsOf, heat, rangeOf, rowsFor, usualScale } from "../src/layout/heat";
import { counterLanes, eventLane } from "../src/layout/lanes";
import { lowerBound, slice, weigh } from "../src/layout/slice";
import { profiles } from "./profile";

const ALL = { threads: null, cpu: null, idle: true };
const SCALE = { column: 1e9, rows: 50 };
const sum = (values: Iterable<number>) => [...values].reduce((all, value) => all + value, 0);

test("cells hold every sample's weight once, rows are parts of the clock's second", () => {
  const all = profiles(5000);
  const track = all.sides[0]!.tracks[0]!;
  const map = heat(slice(all, all.sides[0]!, track, ALL), SCALE, null);
  expect(sum(map.cells)).toBe(sum(track.weight as Float64Array));
  expect(map.total).toBe(sum(track.weight as Float64Array));
  expect(map.origin).toBe(-45_678);
  expect(map.columns).toBe(11);
});

for (const weight of [10, (at: number) => 1 + (at % 5)]) {
  test(`a range and all but it are the whole, ${typeof weight === "number" ? "with one weight for all" : "with weights of their own"}`, () => {
    const all = profiles(4999, weight);
    const part = slice(all, all.sides[0]!, all.sides[0]!.tracks[0]!, ALL);
    const map = heat(part, SCALE, null);
    for (const [a, b] of [[120, 77], [30, 31], [40, 480]] as const) {
      const range = rangeOf(map, a, b);
      const inside = weigh(all.tree, part, range);
      const outside = weigh(all.tree, part, range, true);
      const whole = weigh(all.tree, part, null);
      expect([...inside.totals].map((weight, node) => weight + outside.totals[node]!)).toEqual([...whole.totals]);
      expect(inside.totals[0]).toBe(sum(map.cells.slice(Math.min(a, b), Math.max(a, b) + 1)));
      expect(inside.samples + outside.samples).toBe(4999);
      expect(inside.span + outside.span).toBe(whole.span);
      expect(cellsOf(map, range)).toEqual([Math.min(a, b), Math.max(a, b)]);
    }
  });
}

test("ranges begin where the first sample of their time is", () => {
  const times = Uint32Array.from([5, 5, 7, 9]);
  expect([4, 5, 6, 9, 10].map((time) => lowerBound(times, time))).toEqual([0, 0, 2, 3, 4]);
});

test("filters keep what they say: thread, CPU by its number, what is not idle", () => {
  const all = profiles(1000, 1);
  const [side] = all.sides;
  const track = side!.tracks[0]!;
  expect(slice(all, side!, track, { ...ALL, idle: false }).track.count).toBe(900);
  expect(slice(all, side!, track, { ...ALL, cpu: 4 }).track.count).toBe(500);
  expect(slice(all, side!, track, { ...ALL, cpu: 1 }).track.count).toBe(0);
  expect(slice(all, side!, track, { ...ALL, threads: Uint8Array.from([0, 1, 0]) }).track.count).toBe(333);
  expect(slice(all, side!, track, ALL).track).toBe(track);
});

test("an explorer leaves idle CPUs out, finds tasks by name and id, and colours a search", () => {
  const model = new Explorer(profiles(1000, 1), "cpu-clock");
  expect(model.amounts().widths[0]).toBe(900);
  model.tasks.text = "work";
  model.refilter();
  const worker = model.amounts().widths[0]!;
  model.tasks.text = "9";
  model.refilter();
  expect(model.amounts().widths[0]).toBeLessThan(worker);
  model.tasks.text = "";
  model.tasks.process = "7";
  model.refilter();
  expect(model.slice(0)!.track.threads.every((thread) => thread < 2)).toBe(true);
  model.tasks.process = null;
  model.idle = true;
  model.query = "LIBC";
  model.refilter();
  const map = model.heat(0, SCALE)!;
  expect([map.total, sum(map.matched!)]).toEqual([1000, 400]);
});

test("scales keep to seconds where they can, and to rows that can be told apart", () => {
  expect(usualScale(20e9)).toEqual({ column: 1e9, rows: 50 });
  expect(usualScale(1e9)).toEqual({ column: 5e7, rows: 50 });
  expect(usualScale(3600e9).column).toBe(1e10);
  expect(rowsFor(1e9)).toEqual([1e6, 2e6, 5e6, 1e7, 2e7, 5e7, 1e8]);
});

test("a short recording has as many columns as a long one", () => {
  for (const span of [0.25e9, 0.7e9, 1e9, 2.6e9, 4e9, 19e9, 21e9, 300e9]) {
    const { column, rows } = usualScale(span);
    expect(span / column).toBeGreaterThanOrEqual(20);
    expect(span / column).toBeLessThanOrEqual(400);
    expect(rowsFor(column)).toContain(column / rows);
  }
  expect(usualScale(0.05e9)).toEqual({ column: 1e7, rows: 10 });
});

test("time series lie in the columns of the map and keep what they count", () => {
  const all = profiles(1000, 10_000_000);
  const [side] = all.sides;
  const part = slice(all, side!, side!.tracks[0]!, ALL);
  const map = heat(part, SCALE, null);
  const lane = eventLane(part, map, 4);
  expect([lane.unit, lane.values.length]).toEqual(["CPUs", map.columns * 4]);
  expect(sum(lane.values) * 0.25).toBeCloseTo(10, 6);
  const points: [number, number][] = [[2_000, 40], [10_000, 80]];
  const [counter] = counterLanes([{ name: "page-faults", counted: 1, points }], side!.tick_ns, map, 4);
  expect(sum(counter!.values) * 0.25).toBeCloseTo(120, 6);
  const ratio = counterLanes([{ name: "cycles", counted: 1, points }, { name: "instructions", counted: 1, points: [[2_000, 20], [10_000, 40]] }], side!.tick_ns, map, 1).at(-1)!;
  expect([ratio.name, ratio.unit, ratio.values[5]]).toEqual(["instructions per cycle", "ratio", 0.5]);
});

test("colours reach from nothing to what one cell in a hundred reaches, and set cells apart that all have much", () => {
  const all = profiles(20_000);
  const wide = heat(slice(all, all.sides[0]!, all.sides[0]!.tracks[0]!, ALL), SCALE, null);
  expect(wide.strong).toBeLessThanOrEqual(wide.most);
  expect(wide.pale).toBeLessThan(wide.strong);
  const coarse = heat(slice(all, all.sides[0]!, all.sides[0]!.tracks[0]!, ALL), { column: 1e9, rows: 2 }, null);
  const filled = [...coarse.cells].filter((weight) => weight > 0).sort((a, b) => a - b);
  expect(coarse.pale === 0 || coarse.pale > 0.5 * coarse.strong).toBe(true);
  expect(filled.filter((weight) => weight < coarse.pale).length).toBeLessThanOrEqual(filled.length / 50);
});
