/** Where resident memory was, at each moment. */
import type { Memory, MemoryKind, MemoryMoment } from "../../data/schema";
import { h } from "../../dom";
import { barTable } from "../../draw/bars";
import { tabs } from "../../draw/tabs";
import { bytes, nanos, percent } from "../../format";
import { judged, rows, total } from "../../layout/memory";
import type { Section } from "../section";
import { MEANINGS, partTitle } from "./words";

const RETURNABLE = new Set<MemoryKind>(["freed_kept", "reserve", "pinned", "huge_bloat"]);

const WHEN: Record<MemoryMoment["when"], string> = { before: "At the first look", now: "Now", peak: "At the largest look", running: "While it ran", end: "At the end" };

const moment = ({ when, elapsed_ns: after }: MemoryMoment): string => `${WHEN[when]}${after == null ? "" : `, after ${nanos(after)}`}`;

/** The moment that the verdict is about comes first. */
function moments(memory: Memory): MemoryMoment[] {
  const first = judged(memory);
  return first === undefined ? [] : [first, ...memory.moments.filter((one) => one !== first)];
}

export const memoryRows: Section<Memory> = {
  id: "memory",
  title: "Resident memory",
  nav: "Memory",
  applies: (memory) => judged(memory) !== undefined,
  intro: (memory) => {
    const all = moments(memory);
    const when = all.length === 1 && all[0]!.when !== "now" ? `${moment(all[0]!)}. ` : "";
    return `${when}The rows add up to what the kernel counts as resident. Orange: what could be saved.`;
  },
  render: (memory) => {
    const all = moments(memory);
    return all.length === 1 ? account(all[0]!) : tabs("Moment", all.map((one) => ({ name: moment(one), content: account(one) })));
  },
};

function account(moment: MemoryMoment): HTMLElement {
  const found = rows(moment);
  const whole = Math.max(1, total(moment));
  const isSwapped = found.some(({ swapped }) => swapped > 0);
  const bars = found.map(({ row, size, swapped }) => ({
    name: [h("span", { title: MEANINGS[row.kind] ?? "" }, partTitle(row))],
    share: size,
    figures: [bytes(size), percent(size / whole), ...(isSwapped ? [swapped > 0 ? bytes(swapped) : ""] : [])],
    ink: RETURNABLE.has(row.kind) ? "churn" : "needed",
  }));
  const residue = moment.processes.reduce((sum, one) => sum + Math.abs(one.residue), 0);
  return h(
    "div",
    {},
    barTable("Resident memory", ["What", "Size", "Share", ...(isSwapped ? ["Swapped out"] : [])], bars),
    residue > 0 && h("p", { class: "faint" }, `The rows differ from the kernel's count by ${bytes(residue)} (${percent(residue / whole)}): memory changed during the look.`),
  );
}
