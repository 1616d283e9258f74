/** Where resident memory was at the largest look. */
import type { MemoryMoment, MemoryRow } from "../../data/schema";
import type { Report } from "../../data/types";
import { h } from "../../dom";
import { barTable } from "../../draw/bars";
import { bytes, nanos, percent } from "../../format";
import type { Section } from "../section";

const NAMES: Record<string, string> = {
  live: "in use",
  cached: "freed, in caches",
  freed_kept: "freed and kept",
  pinned: "free, pinned by blocks in use",
  reserve: "end of the heap, in reserve",
  huge_bloat: "zeros in huge pages",
  bookkeeping: "the allocator's own data",
  stacks: "stacks",
  program: "program and libraries",
  files: "mapped files",
  shared: "shared memory",
  special: "the kernel's mappings",
  not_readable: "not readable",
};

const MEANINGS: Record<string, string> = {
  live: "Blocks that the program has not freed.",
  freed_kept: "Whole pages inside freed blocks: the allocator could return them.",
  pinned: "Free space on pages that also hold a block in use: it cannot be returned.",
  not_readable: "Memory of an allocator that Pagewise does not read, or of none.",
};

const RETURNABLE = new Set(["freed_kept", "reserve", "pinned", "huge_bloat"]);

/** Rows of all processes; pages that several map are divided among them. */
export function rows({ processes }: MemoryMoment): { name: string; kind: string; size: number }[] {
  const sums = new Map<string, { name: string; kind: string; size: number }>();
  const size = (row: MemoryRow) => (processes.length > 1 ? row.proportional : row.resident);
  for (const row of processes.flatMap((process) => process.rows)) {
    const owner = [row.allocator, row.part].filter((word) => word != null).join(" ");
    const name = `${NAMES[row.kind] ?? row.kind}${owner === "" ? "" : `: ${owner}`}`;
    const sum = sums.get(name) ?? { name, kind: row.kind, size: 0 };
    sum.size += size(row);
    sums.set(name, sum);
  }
  return [...sums.values()].filter((row) => row.size > 0).sort((a, b) => b.size - a.size);
}

const judged = (report: Report): MemoryMoment | undefined => report.findings.memory?.moments.at(-1);

export const memory: Section<Report> = {
  id: "memory",
  title: "Resident memory",
  nav: "Memory",
  applies: (report) => judged(report) !== undefined,
  intro: (report) => {
    const after = judged(report)?.elapsed_ns;
    return `At the largest look${after == null ? "" : `, after ${nanos(after)}`}. The rows add up to what the kernel counts as resident.`;
  },
  render: (report) => {
    const found = rows(judged(report)!);
    const total = found.reduce((sum, row) => sum + row.size, 0);
    const bars = found.map(({ name, kind, size }) => ({
      name: [h("span", { title: MEANINGS[kind] ?? "" }, name)],
      share: size,
      figures: [bytes(size), percent(total > 0 ? size / total : 0)],
      ink: RETURNABLE.has(kind) ? "churn" : "needed",
    }));
    return barTable("Resident memory", ["What", "Size", "Share"], bars);
  },
};
