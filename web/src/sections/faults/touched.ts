/** Who touched the resident memory first. */
import type { FlameNode, TouchedMemory } from "../../data/schema";
import type { Report } from "../../data/types";
import { h } from "../../dom";
import type { FlameWords } from "../../draw/flame";
import { flamePanel } from "../../draw/flamePanel";
import { tabs } from "../../draw/tabs";
import { bytes, nanos, percent } from "../../format";
import type { Section } from "../section";

/** Looks at processes that are drawn; the rest was small in every program seen. */
const MOST = 4;

/** Stacks as a tree, the outermost function at its root. */
export function tree({ functions, stacks, resident, unseen, other }: TouchedMemory): FlameNode {
  const root: FlameNode = { name: "all", module: "", total: resident, children: [] };
  for (const { frames, bytes: size } of stacks) {
    let node = root;
    for (const frame of [...frames].reverse()) {
      const { name, module = "" } = functions[frame]!;
      let child = node.children.find((one) => one.name === name && one.module === module);
      if (child === undefined) {
        child = { name, module, total: 0, children: [] };
        node.children.push(child);
      }
      child.total += size.value;
      node = child;
    }
  }
  const rest: [string, number][] = [
    ["[not seen]", unseen],
    ["[smaller stacks]", other],
  ];
  for (const [name, total] of rest.filter(([, total]) => total > 0)) root.children.push({ name, module: "", total, children: [] });
  sort(root);
  return root;
}

function sort(node: FlameNode): void {
  node.children.sort((a, b) => b.total - a.total);
  node.children.forEach(sort);
}

const BYTES: FlameWords = {
  of: "this memory",
  weight: (total) => bytes(total),
  module: (module) => module || "unknown file",
  search: "Search function or file",
};

function drawn(process: TouchedMemory): HTMLElement {
  const { resident, unseen, elapsed_ns: elapsed, samples } = process;
  const seen = unseen > 0 ? ` ${bytes(unseen)} (${percent(unseen / resident)}) were touched before the recording, or without a fault or a call stack.` : "";
  const words = `${bytes(resident)} of private memory after ${nanos(elapsed)}, from ${samples} recorded faults on pages that were in memory then.${seen}`;
  return h("div", {}, h("p", { class: "faint" }, words), flamePanel(tree(process), BYTES, "this memory", 0, `touched-${process.pid}-${process.is_peak}`));
}

/** What differs between the looks: the process, the moment, or both. */
function label(look: TouchedMemory, all: TouchedMemory[]): string {
  const moment = look.is_peak ? "at the largest look" : "later";
  return all.every(({ pid }) => pid === look.pid) ? moment : `${look.name} (${look.pid}) ${moment}`;
}

const processes = (report: Report): TouchedMemory[] => (report.findings.memory?.touched ?? []).slice(0, MOST);

export const touched: Section<Report> = {
  id: "touched",
  title: "Who first touched the memory",
  nav: "Memory flame graph",
  applies: (report) => processes(report).length > 0,
  intro: () =>
    "The memory that was resident at the largest look, by the code that touched it first. Each box is a function, as wide as its share; what it called is next to it. Memory that was given back before is not in it.",
  render: (report) => {
    const found = processes(report);
    if (found.length === 1) return drawn(found[0]!);
    return tabs("Process and moment", found.map((process) => ({ name: label(process, found), content: drawn(process) })));
  },
};
