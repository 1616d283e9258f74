import { h } from "../dom";
import { missingLines } from "../layout/missing";
import type { Section } from "./section";

export const missing: Section = {
  id: "missing",
  title: "What is missing",
  nav: "Missing",
  applies: (report) => missingLines(report).length > 0,
  intro: () => "What could not be seen or was lost while recording. The figures above do without it.",
  render: (report) => h("ul", {}, ...missingLines(report).map((line) => h("li", {}, line))),
};
