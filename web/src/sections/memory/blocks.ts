/** What blocks in use are, what holds pages with free space, and what is leaked. */
import type { BlockGroup, Memory, MemoryMoment, ProcessMemory } from "../../data/schema";
import { h, type Child } from "../../dom";
import { barTable } from "../../draw/bars";
import { bytes, count, percent } from "../../format";
import { groups, judged } from "../../layout/memory";
import type { Section } from "../section";
import { groupName, margin } from "./words";

/** Groups that are shown; JSON has all. */
const MOST = 12;
/** Bytes from which it is worth showing who has them, and the same of leaked ones, as in the text. */
const LEAST_HELD = 2 ** 20;
const LEAST_LEAKED = 2 ** 16;

type Of = (process: ProcessMemory) => BlockGroup[] | undefined;

const weight = (moment: MemoryMoment, of: Of): number => groups(moment, of, groupName).reduce((sum, group) => sum + group.bytes.value, 0);

interface Shown {
  title: string;
  heads: [what: string, size: string, number: string];
  of: Of;
  least: number;
  ink: string;
}

const TABLES: Shown[] = [
  { title: "Leaked: no pointer leads to these blocks", heads: ["Blocks", "Size", "About"], of: ({ leaks }) => leaks?.groups, least: LEAST_LEAKED, ink: "churn" },
  { title: "In use, by type or size of block", heads: ["Blocks", "Size", "About"], of: ({ blocks }) => blocks, least: LEAST_HELD, ink: "needed" },
  { title: "What holds pages with free space", heads: ["Smallest block on the page", "Pinned", "Pages"], of: ({ pins }) => pins, least: LEAST_HELD, ink: "churn" },
];

const shown = (memory: Memory): Shown[] => {
  const moment = judged(memory);
  return moment === undefined ? [] : TABLES.filter(({ of, least }) => weight(moment, of) >= least);
};

export const memoryBlocks: Section<Memory> = {
  id: "memory-blocks",
  title: "What blocks they are",
  nav: "Blocks",
  applies: (memory) => shown(memory).length > 0,
  intro: () => "Estimated from blocks drawn at random by their bytes; ± is half of the 95 % interval.",
  render: (memory) => h("div", {}, ...shown(memory).flatMap((table) => drawn(judged(memory)!, table))),
};

function drawn(moment: MemoryMoment, { title, heads: [what, size, number], of, ink }: Shown): Child[] {
  const all = groups(moment, of, groupName);
  const whole = all.reduce((sum, group) => sum + group.bytes.value, 0);
  const bars = all.slice(0, MOST).map((group) => ({ name: [group.name], share: group.bytes.value, figures: [bytes(group.bytes.value), margin(group.bytes), percent(group.bytes.value / whole), count(group.count)], ink }));
  const more = all.length - bars.length;
  return [h("h3", {}, title), barTable(title, [what, size, "±", "Share", number], bars, ["±", number]), more > 0 && h("p", { class: "faint" }, `${count(more)} more in JSON (--json).`)];
}
