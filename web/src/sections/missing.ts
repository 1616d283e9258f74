import type { Report } from "../data/types";
import { h } from "../dom";
import { count } from "../format";
import type { Section } from "./section";

export const missing: Section = {
  id: "missing",
  title: "What is missing",
  nav: "Missing",
  kinds: ["findings"],
  applies: (report) => lines(report).length > 0,
  intro: () => "What could not be seen or was lost while recording. The figures above do without it.",
  render: (report) => h("ul", {}, ...lines(report).map((line) => h("li", {}, line))),
};

function lines(report: Report): string[] {
  const { collection, timeline } = report.findings;
  const gaps = timeline.gaps > 0 ? [`${count(timeline.gaps)} points missing in the timeline`] : [];
  const losses = report.losses.map((loss) => `${count(loss.count)} ${loss.text}`);
  return [...losses, ...gaps, ...collection.notes, ...(timeline.notes ?? [])];
}
