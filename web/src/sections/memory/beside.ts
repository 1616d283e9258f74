/** Beside the resident memory: heaps as their allocators count them, processes, the memory cgroup. */
import type { Heap, Memory, MemoryMoment } from "../../data/schema";
import { h, type Child } from "../../dom";
import { bytes, count } from "../../format";
import { judged } from "../../layout/memory";
import { facts } from "../machine";
import type { Section } from "../section";
import { partName } from "./words";

/** Heaps and processes that are shown; JSON has all. */
const MOST = 24;

export const memoryBeside: Section<Memory> = {
  id: "memory-beside",
  title: "Heaps, processes and the memory cgroup",
  nav: "Heaps",
  folded: true,
  applies: (memory) => judged(memory) !== undefined,
  render: (memory) => {
    const moment = judged(memory)!;
    return h("div", {}, ...heaps(moment), ...processes(moment), cgroup(moment));
  },
};

function table(caption: string, heads: string[], rows: string[][]): Child[] {
  if (rows.length === 0) return [];
  const cells = (row: string[]) => row.map((cell, column) => (column === 0 ? h("th", { scope: "row" }, cell) : h("td", { class: "number" }, cell)));
  const shown = rows.slice(0, MOST).map((row) => h("tr", {}, ...cells(row)));
  const head = heads.map((head, column) => h("th", { class: column === 0 ? "" : "number" }, head));
  const more = rows.length - shown.length;
  return [
    h("h3", {}, caption),
    h("div", { class: "scroll" }, h("table", { class: "bars" }, h("caption", { class: "sr" }, caption), h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...shown))),
    more > 0 && h("p", { class: "faint" }, `${count(more)} more in JSON (--json).`),
  ];
}

function heaps({ processes }: MemoryMoment): Child[] {
  const all = processes.flatMap(({ name, pid, heaps = [] }) => heaps.map((heap) => ({ heap, owner: processes.length > 1 ? `${name} (${pid}): ` : "" })));
  if (processes.length > 1) all.sort((a, b) => b.heap.size - a.heap.size);
  const rows = all.map(({ heap, owner }) => [owner + partName(heap.allocator, heap.part), bytes(heap.in_use), count(heap.blocks), bytes(heap.cached), bytes(heap.free), bytes(heap.reserve), check(heap)]);
  return table("Heaps (address space, resident or not)", ["Heap", "In use", "Blocks", "Cached", "Free", "Reserve", "Checked by"], rows);
}

function check({ check, changed = 0 }: Heap): string {
  if (check === "counter") return "its own counter";
  return changed > 0 ? `all but ${bytes(changed)}` : "no gap";
}

function processes({ processes }: MemoryMoment): Child[] {
  if (processes.length < 2) return [];
  const all = [...processes].sort((a, b) => b.proportional - a.proportional);
  return table("Processes (shared pages divided)", ["Process", "Its share", "Resident", "Swapped out"], all.map((one) => [`${one.name} (${one.pid})`, bytes(one.proportional), bytes(one.resident), one.swapped > 0 ? bytes(one.swapped) : ""]));
}

function cgroup({ processes, cgroup }: MemoryMoment): HTMLElement | null {
  const tables = processes.reduce((sum, one) => sum + one.page_tables, 0);
  const size = (value: number | null | undefined): string => (value == null ? "" : bytes(value));
  return facts("Next to it", [
    ["Page tables", bytes(tables)],
    ["Memory cgroup", size(cgroup?.charged)],
    ["Its limit", size(cgroup?.limit)],
    ["Anonymous memory", size(cgroup?.anonymous)],
    ["Page cache", size(cgroup?.page_cache)],
    ["Shared memory and tmpfs", size(cgroup?.shared)],
    ["Kernel memory", size(cgroup?.kernel)],
    ["Swapped out", size(cgroup?.swapped)],
  ]);
}
