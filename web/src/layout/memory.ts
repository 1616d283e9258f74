/** The account of memory: its moments, its rows, its layers over time, its blocks. */
import type { Page } from "../data/page";
import type { BlockGroup, FlameNode, Memory, MemoryKind, MemoryMoment, MemoryPoint, MemoryRow, ProcessMemory } from "../data/schema";
import type { Point } from "./series";

/** The account of this page: its own, or that beside an account of time. */
export const memoryOf = ({ memory, faults }: Page): Memory | undefined => memory?.found ?? faults?.findings.memory ?? undefined;

/** The moment that the verdict is about. */
export const judged = ({ finding, moments }: Memory): MemoryMoment | undefined => moments.find(({ when }) => when === finding.when) ?? moments.at(-1);

export const total = ({ processes }: MemoryMoment): number => processes.reduce((sum, one) => sum + (processes.length > 1 ? one.proportional : one.resident), 0);

/** Rows of all processes, the largest first; pages that several map are divided among them. */
export function rows({ processes }: MemoryMoment): { row: MemoryRow; size: number; swapped: number }[] {
  const sums = new Map<string, { row: MemoryRow; size: number; swapped: number }>();
  for (const row of processes.flatMap((process) => process.rows)) {
    const name = [row.kind, row.allocator, row.part, row.unread].join();
    const sum = sums.get(name) ?? { row, size: 0, swapped: 0 };
    sum.size += processes.length > 1 ? row.proportional : row.resident;
    sum.swapped += row.swapped;
    sums.set(name, sum);
  }
  return [...sums.values()].filter(({ size, swapped }) => size + swapped > 0).sort((a, b) => b.size - a.size);
}

/** What is drawn one on top of the other, and what is in each. */
const LAYERS: { name: string; ink: string; kinds: MemoryKind[] }[] = [
  { name: "in use", ink: "needed", kinds: ["live"] },
  { name: "freed, kept by the allocator", ink: "churn", kinds: ["freed_kept", "reserve", "cached"] },
  { name: "free, pinned", ink: "rose", kinds: ["pinned"] },
  { name: "zeros in huge pages", ink: "violet", kinds: ["huge_bloat"] },
];
const REST = { name: "other", ink: "kernel" };

export interface Layer {
  name: string;
  ink: string;
  points: Point[];
}

/** All looks at a run in order of time, the one at its end among them. */
export function looks({ course = [], moments }: Memory): MemoryPoint[] {
  const end = moments.find(({ when }) => when === "end");
  if (end?.elapsed_ns == null) return course;
  const last = { elapsed_ns: end.elapsed_ns, resident: total(end), layers: rows(end).map(({ row, size }) => ({ kind: row.kind, bytes: size })) };
  return [...course.filter(({ elapsed_ns }) => elapsed_ns <= last.elapsed_ns), last];
}

/** What each look saw, as layers that add up to the resident memory; those of which no look saw anything are left out. */
export function layers(memory: Memory): Layer[] {
  const course = looks(memory);
  const points = (of: (at: number) => number): Point[] => course.map(({ elapsed_ns }, at) => ({ x: elapsed_ns, y: of(at) }));
  const sum = (at: number, kinds: MemoryKind[]) => course[at]!.layers.filter(({ kind }) => kinds.includes(kind)).reduce((all, { bytes }) => all + bytes, 0);
  const known = LAYERS.map(({ name, ink, kinds }) => ({ name, ink, points: points((at) => sum(at, kinds)) }));
  const rest = points((at) => Math.max(0, course[at]!.resident - known.reduce((all, layer) => all + layer.points[at]!.y, 0)));
  return [...known, { ...REST, points: rest }].filter((layer) => layer.points.some(({ y }) => y > 0));
}

/** Groups of blocks of all processes by name, the largest first; shared pages are divided among processes. */
export function groups({ processes }: MemoryMoment, of: (process: ProcessMemory) => BlockGroup[] | undefined, name: (group: BlockGroup) => string): { name: string; bytes: BlockGroup["bytes"]; count: number }[] {
  const sums = new Map<string, { name: string; bytes: BlockGroup["bytes"]; count: number }>();
  for (const process of processes) {
    const part = processes.length > 1 ? process.proportional / Math.max(1, process.resident) : 1;
    for (const group of of(process) ?? []) {
      const sum = sums.get(name(group)) ?? { name: name(group), bytes: { value: 0, low: 0, high: 0 }, count: 0 };
      const { value, low, high } = group.bytes;
      sums.set(sum.name, { name: sum.name, bytes: { value: sum.bytes.value + value * part, low: sum.bytes.low + low * part, high: sum.bytes.high + high * part }, count: sum.count + group.count * part });
    }
  }
  return [...sums.values()].sort((a, b) => b.bytes.value - a.bytes.value);
}

/** Stacks, innermost function first, and what each weighs. */
interface Weighed {
  functions: { name: string; module?: string }[];
  stacks: { frames: number[]; weight: number }[];
  total: number;
  /** Weights without a stack. */
  rest: [name: string, weight: number][];
}

/** Stacks as a tree, the outermost function at its root. */
export function stackTree({ functions, stacks, total, rest }: Weighed): FlameNode {
  const root: FlameNode = { name: "all", module: "", total, children: [] };
  for (const { frames, weight } of stacks.filter((stack) => stack.weight > 0)) {
    let node = root;
    for (const frame of [...frames].reverse()) {
      const { name, module = "" } = functions[frame]!;
      let child = node.children.find((one) => one.name === name && one.module === module);
      if (child === undefined) {
        child = { name, module, total: 0, children: [] };
        node.children.push(child);
      }
      child.total += weight;
      node = child;
    }
  }
  for (const [name, weight] of rest.filter(([, weight]) => weight > 0)) root.children.push({ name, module: "", total: weight, children: [] });
  sort(root);
  return root;
}

function sort(node: FlameNode): void {
  node.children.sort((a, b) => b.total - a.total);
  node.children.forEach(sort);
}
