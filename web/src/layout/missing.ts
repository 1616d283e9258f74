/** What the figures do without, in words. */
import type { TracedFaults } from "../data/faultPaths";
import type { Head } from "../data/head";
import type { Page } from "../data/page";
import type { Report } from "../data/types";
import { count } from "../format";

/** One line for each loss and note of all parts, the counted ones first. */
export function missingLines(page: Page): string[] {
  const { faults, profile, paths, paths_diff, paging, balance, notes } = page;
  const lines = [
    ...(faults ? ofFaults(faults) : []),
    ...(profile ? [...counted(profile), ...profile.notes] : []),
    ...(paths ? leftOut(paths.findings.missing) : []),
    ...(paths_diff ? [...leftOut(paths_diff.diff.a.missing).map((line) => `A: ${line}`), ...leftOut(paths_diff.diff.b.missing).map((line) => `B: ${line}`)] : []),
    ...(paging && paging.points.length === 0 ? ["The course has no readings"] : []),
    ...(balance ? [...balance.refused.map(({ reason, count: times }) => `${count(times)} tries changed nothing: ${reason}`), ...(balance.no_counters ? [balance.no_counters] : [])] : []),
    ...notes,
  ];
  // Faults and samples of one recording tell the same losses.
  return [...new Set(lines)];
}

const counted = ({ losses }: Head): string[] => losses.map((loss) => `${count(loss.count)} ${loss.text}`);

function ofFaults(report: Report): string[] {
  const { collection, timeline } = report.findings;
  const gaps = timeline.gaps > 0 ? [`${count(timeline.gaps)} points missing in the timeline`] : [];
  return [...counted(report), ...gaps, ...collection.notes, ...(timeline.notes ?? [])];
}

/** What is missing is named in the plural: "calls that never ended". */
const leftOut = (missing: TracedFaults["missing"]): string[] => missing.map(({ count: n, what }) => `${count(n)} ${n === 1 ? what.replace(/^(\w+)s\b/, "$1") : what}`);
