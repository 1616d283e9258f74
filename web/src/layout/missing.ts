/** What is missing from the figures, in words. */
import type { Page } from "../data/page";
import type { Report } from "../data/types";
import { counted } from "../format";
import { judged } from "./memory";

/** One line for each loss and note of all parts, the counted ones first. */
export function missingLines(page: Page): string[] {
  const { faults, memory, paging, balance, profile_diff, losses, notes } = page;
  const lines = [
    ...losses,
    ...(faults ? ofFaults(faults) : []),
    ...(memory ? (judged(memory.found)?.refused ?? []).map(({ reason }) => reason) : []),
    ...(paging && paging.points.length === 0 ? ["The course has no readings"] : []),
    ...(balance ? [...balance.refused.map(({ reason, count: times }) => `${counted(times, "attempt")} changed nothing: ${reason}`), ...(balance.no_counters ? [balance.no_counters] : [])] : []),
    // The notes on two profiles are about the method, those on memory about what was found.
    ...(profile_diff || memory ? [] : notes),
  ];
  // Faults and samples of one recording have the same notes.
  return [...new Set(lines)];
}

const ofFaults = ({ findings: { collection, timeline } }: Report): string[] => [...collection.notes, ...(timeline.notes ?? [])];
