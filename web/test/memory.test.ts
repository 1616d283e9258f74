import { expect, test } from "vitest";
import type { Memory, MemoryMoment, MemoryRow, ProcessMemory } from "../src/data/schema";
import { groups, judged, layers, looks, rows, stackTree, total } from "../src/layout/memory";
import { stacked } from "../src/layout/series";

const row = (kind: MemoryRow["kind"], resident: number, proportional = resident): MemoryRow => ({ kind, resident, proportional, swapped: 0 });
const process = (pid: number, rows: MemoryRow[]): ProcessMemory => {
  const sum = (of: (row: MemoryRow) => number) => rows.reduce((all, one) => all + of(one), 0);
  return { pid, name: "a", page_tables: 0, residue: 0, swapped: 0, rows, resident: sum((one) => one.resident), proportional: sum((one) => one.proportional) };
};
const moment = (when: MemoryMoment["when"], elapsed_ns: number, ...processes: ProcessMemory[]): MemoryMoment => ({ when, elapsed_ns, look_ns: 1, processes });
const memory = (when: MemoryMoment["when"], moments: MemoryMoment[], course: Memory["course"] = []): Memory => ({ finding: { verdict: "retention", when, bytes: 0, not_readable: 0 }, moments, course });

test("the moment of the verdict is judged, not the last", () => {
  const [peak, end] = [moment("peak", 5), moment("end", 9)];
  expect(judged(memory("peak", [peak, end]))).toBe(peak);
  expect(judged(memory("now", [peak, end]))).toBe(end);
});

test("pages that processes share count once", () => {
  const both = moment("now", 0, process(1, [row("live", 30), row("program", 20, 10)]), process(2, [row("live", 4), row("program", 20, 10)]));
  expect(rows(both).map(({ row, size }) => [row.kind, size])).toEqual([["live", 34], ["program", 20]]);
  expect(total(both)).toBe(54);
});

test("layers of all looks add up to the resident memory, the look at the end among them", () => {
  const course = [
    { elapsed_ns: 10, resident: 100, layers: [{ kind: "live" as const, bytes: 60 }, { kind: "stacks" as const, bytes: 40 }] },
    { elapsed_ns: 20, resident: 90, layers: [{ kind: "reserve" as const, bytes: 30 }, { kind: "freed_kept" as const, bytes: 20 }, { kind: "program" as const, bytes: 40 }] },
    { elapsed_ns: 40, resident: 1, layers: [] },
  ];
  const run = memory("peak", [moment("end", 30, process(1, [row("live", 7), row("files", 3)]))], course);
  expect(looks(run).map((look) => [look.elapsed_ns, look.resident])).toEqual([[10, 100], [20, 90], [30, 10]]);
  expect(layers(run).map(({ name, points }) => [name, points.map(({ y }) => y)])).toEqual([
    ["in use", [60, 0, 7]],
    ["freed, kept by the allocator", [0, 50, 0]],
    ["other", [40, 40, 3]],
  ]);
  expect(stacked(layers(run).map(({ points }) => points)).at(-1)!.map(({ y }) => y)).toEqual([100, 90, 10]);
});

test("blocks of several processes are added by name, the largest first", () => {
  const group = (high: number, value: number) => ({ allocator: "glibc" as const, size: { low: high, high }, bytes: { value, low: value / 2, high: value * 2 }, count: 3 });
  const half = { ...process(1, [row("live", 20, 10)]), blocks: [group(32, 8)] };
  const other = { ...process(2, [row("live", 20, 20)]), blocks: [group(64, 5), group(32, 2)] };
  const found = groups(moment("now", 0, half, other), ({ blocks }) => blocks, ({ size }) => `${size.high}`);
  expect(found).toEqual([
    { name: "32", bytes: { value: 6, low: 3, high: 12 }, count: 4.5 },
    { name: "64", bytes: { value: 5, low: 2.5, high: 10 }, count: 3 },
  ]);
});

test("stacks become a tree with the outermost function at its root", () => {
  const functions = [{ name: "malloc" }, { name: "fill", module: "work" }, { name: "main", module: "work" }];
  const tree = stackTree({ functions, stacks: [{ frames: [0, 1, 2], weight: 3 }, { frames: [1, 2], weight: 2 }, { frames: [0, 2], weight: 0 }], total: 9, rest: [["[not seen]", 4], ["[smaller stacks]", 0]] });
  expect(tree.children.map(({ name, total }) => [name, total])).toEqual([["main", 5], ["[not seen]", 4]]);
  expect(tree.children[0]!.children).toEqual([{ name: "fill", module: "work", total: 5, children: [{ name: "malloc", module: "", total: 3, children: [] }] }]);
});
