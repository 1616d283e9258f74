/** Who allocated what is live, where allocations were sampled. */
import type { Held, Memory, ProcessHolders } from "../../data/schema";
import { h } from "../../dom";
import { choice } from "../../draw/choice";
import { flamePanel } from "../../draw/flamePanel";
import { tabs } from "../../draw/tabs";
import { bytes, counted, nanos } from "../../format";
import { stackTree } from "../../layout/memory";
import type { Section } from "../section";
import { BYTES } from "./flame";

/** Processes that are drawn, and live bytes from which one is. */
const MOST = 4;
const LEAST = 2 ** 20;

type Moment = "peak" | "end" | "allocated";
const MOMENTS: [Moment, string][] = [["peak", "live at the peak"], ["end", "live at the end"], ["allocated", "ever allocated"]];

const worth = ({ holders }: Memory): ProcessHolders[] => (holders?.processes ?? []).filter(({ peak }) => peak.bytes.value >= LEAST).slice(0, MOST);

export const memoryHolders: Section<Memory> = {
  id: "memory-holders",
  title: "Who allocated it",
  nav: "Allocated by",
  applies: (memory) => worth(memory).length > 0,
  intro: ({ holders }) => `Live blocks by the call stack that allocated them, estimated from one sample for each ${bytes(holders!.period)} allocated.`,
  render: (memory) => {
    const found = worth(memory);
    if (found.length === 1) return drawn(found[0]!);
    return tabs("Process", found.map((process) => ({ name: `${process.program} (${process.pid})`, content: drawn(process) })));
  },
};

function drawn(process: ProcessHolders): HTMLElement {
  const graph = h("div", {});
  const show = (moment: Moment) => graph.replaceChildren(flame(process, moment));
  show("peak");
  const words = `${bytes(process.peak.bytes.value)} were live at the peak, ${nanos(process.peak_ns)} after the first allocation, by ${counted(process.samples, "sample")} of ${bytes(process.allocated.bytes.value)} allocated in all.`;
  return h("div", {}, h("div", { class: "pane-head" }, h("p", { class: "faint" }, words), choice("Moment", MOMENTS, (moment) => show(moment as Moment))), graph);
}

function flame({ functions, stacks, pid, ...process }: ProcessHolders, moment: Moment): HTMLElement {
  const of = (held: Record<Moment, Held>) => held[moment].bytes.value;
  const shown = stacks.map((stack) => ({ frames: stack.frames, weight: of(stack) }));
  const known = shown.reduce((sum, { weight }) => sum + weight, 0);
  const total = Math.max(known, of(process));
  // Below a thousandth it is the sum's rounding.
  const rest = total - known > total / 1000 ? total - known : 0;
  return flamePanel(stackTree({ functions, stacks: shown, total, rest: [["[smaller stacks]", rest]] }), BYTES, "this memory", 0, `held-${pid}-${moment}`);
}
