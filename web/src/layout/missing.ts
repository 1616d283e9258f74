/** What the figures do without, in words. */
import type { Report } from "../data/types";
import { count } from "../format";

/** One line for each loss and note, the counted ones first. */
export function missingLines(report: Report): string[] {
  const { collection, timeline } = report.findings;
  const gaps = timeline.gaps > 0 ? [`${count(timeline.gaps)} points missing in the timeline`] : [];
  const losses = report.losses.map((loss) => `${count(loss.count)} ${loss.text}`);
  return [...losses, ...gaps, ...collection.notes, ...(timeline.notes ?? [])];
}
