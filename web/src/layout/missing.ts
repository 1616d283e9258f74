/** What the figures do without, in words. */
import type { Page } from "../data/page";
import type { Report } from "../data/types";
import { counted } from "../format";

/** One line for each loss and note of all parts, the counted ones first. */
export function missingLines(page: Page): string[] {
  const { faults, profile, paging, balance, losses, notes } = page;
  const lines = [
    ...(faults ? ofFaults(faults) : []),
    ...(profile ? [...profile.losses, ...profile.notes] : []),
    ...losses,
    ...(paging && paging.points.length === 0 ? ["The course holds no reading"] : []),
    ...(balance ? [...balance.refused.map(({ reason, count: times }) => `${counted(times, "attempt")} changed nothing: ${reason}`), ...(balance.no_counters ? [balance.no_counters] : [])] : []),
    ...notes,
  ];
  // Faults and samples of one recording tell the same losses.
  return [...new Set(lines)];
}

const ofFaults = ({ losses, findings: { collection, timeline } }: Report): string[] => [...losses, ...collection.notes, ...(timeline.notes ?? [])];
