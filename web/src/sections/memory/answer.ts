/** Where the memory went: the verdict and its figures. */
import type { MemoryPart } from "../../data/page";
import type { ByteRange, MemoryVerdict } from "../../data/schema";
import { h } from "../../dom";
import { bytes, counted, nanos, percent } from "../../format";
import { explained } from "../../glossary";
import { judged, rows, total } from "../../layout/memory";
import type { Answer } from "../answer";
import { tile, type Tone } from "../head";
import { signedBytes } from "./words";

const BADGES: Record<MemoryVerdict, [string, Tone]> = {
  all_in_use: ["All in use", "good"],
  growth: ["Growth", "bad"],
  leak: ["Leak", "bad"],
  retention: ["Retention", "bad"],
  fragmentation: ["Fragmentation", "bad"],
  bloat: ["Huge-page bloat", "bad"],
  freed_to_end: ["Freed to end", "good"],
  cache: ["Page cache", "good"],
  limit_too_small: ["Limit too small", "bad"],
  cannot_tell: ["Cannot tell", "neutral"],
};

export const answer: Answer<MemoryPart> = {
  title: "Memory",
  nav: "Memory",
  badge: ({ found }) => BADGES[found.finding.verdict],
  headline: (_, { verdict }) => verdict,
  account: (part, { notes }) => [h("div", { class: "tiles" }, ...tiles(part)), notes.length > 0 && h("ul", { class: "evidence" }, ...notes.map((note) => h("li", {}, ...explained(note))))],
};

function tiles({ found }: MemoryPart): HTMLElement[] {
  const moment = judged(found);
  if (moment === undefined) return [];
  const whole = total(moment);
  const all = rows(moment);
  const sum = (...kinds: string[]) => all.filter(({ row }) => kinds.includes(row.kind)).reduce((sum, { size }) => sum + size, 0);
  const share = (size: number) => `${percent(size / Math.max(1, whole))} of it`;
  const { finding, growth } = found;
  const [live, freed, unread] = [sum("live"), sum("freed_kept", "reserve", "pinned", "huge_bloat", "cached"), sum("not_readable")];
  const after = moment.elapsed_ns == null ? "" : `after ${nanos(moment.elapsed_ns)}`;
  const leaks = moment.processes.flatMap(({ leaks }) => (leaks == null || leaks.leaked_blocks === 0 ? [] : [leaks]));
  return [
    tile("Resident", bytes(whole), moment.processes.length > 1 ? `in ${counted(moment.processes.length, "process").replace("processs", "processes")}` : "", after),
    tile("In use", bytes(live), share(live), "blocks that the program has not freed"),
    tile("Free, and still resident", bytes(freed), share(freed), finding.returnable == null ? "" : returned(finding.returnable)),
    ...(growth == null ? [] : [tile("Grew", signedBytes(growth.live), "blocks in use, between the looks")]),
    ...(leaks.length === 0 ? [] : [tile("Leaked", bytes(leaks.reduce((sum, { leaked }) => sum + leaked.low, 0)), `at least, in ${counted(leaks.reduce((sum, one) => sum + one.leaked_blocks, 0), "block")}`)]),
    ...(unread * 100 >= whole ? [tile("Not readable", bytes(unread), share(unread))] : []),
  ];
}

const returned = ({ low, high }: ByteRange): string => (low === high ? `${bytes(high)} could be returned` : `${bytes(low)} to ${bytes(high)} could be returned`);
