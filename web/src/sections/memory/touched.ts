/** Who touched the resident memory first. */
import type { FlameNode, Memory, TouchedMemory } from "../../data/schema";
import { h } from "../../dom";
import { flamePanel } from "../../draw/flamePanel";
import { tabs } from "../../draw/tabs";
import { bytes, nanos, percent } from "../../format";
import { stackTree } from "../../layout/memory";
import type { Section } from "../section";
import { BYTES } from "./flame";

/** Looks at processes that are drawn; the rest was small in every program seen. */
const MOST = 4;

export const tree = ({ functions, stacks, resident, unseen, other }: TouchedMemory): FlameNode =>
  stackTree({ functions, stacks: stacks.map(({ frames, bytes: { value } }) => ({ frames, weight: value })), total: resident, rest: [["[not seen]", unseen], ["[smaller stacks]", other]] });

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

const processes = ({ touched = [] }: Memory): TouchedMemory[] => touched.slice(0, MOST);

export const touched: Section<Memory> = {
  id: "touched",
  title: "Who first touched the memory",
  nav: "First touch",
  applies: (memory) => processes(memory).length > 0,
  intro: () =>
    "The memory that was resident at the largest look, by the code that touched it first. Each box is a function, as wide as its share; what it called is next to it. Memory that was given back before is not in it.",
  render: (memory) => {
    const found = processes(memory);
    if (found.length === 1) return drawn(found[0]!);
    return tabs("Process and moment", found.map((process) => ({ name: label(process, found), content: drawn(process) })));
  },
};
