import { h } from "../dom";
import { count } from "../format";
import type { Section } from "./section";

export const missing: Section = {
  id: "missing",
  title: "What is missing",
  kinds: ["findings"],
  applies: (report) => report.losses.length > 0 || report.findings.collection.notes.length > 0,
  intro: () => "What could not be seen or was lost while recording. The figures above do without it.",
  render: (report) =>
    h(
      "ul",
      {},
      ...report.losses.map((loss) => h("li", {}, `${count(loss.count)} ${loss.text}`)),
      ...report.findings.collection.notes.map((note) => h("li", {}, note)),
    ),
};
