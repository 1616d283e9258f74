/**
 * What was found, most important first: diagnoses of faults and of samples, what stands out in
 * traces, what differs.
 */
import type { Page } from "../data/page";
import type { Diagnosis } from "../data/types";
import { h, prose, type Child } from "../dom";
import { percent } from "../format";
import { explained } from "../glossary";
import { findings as ofPathsDiff } from "./fault_diff/findings";
import { findings as ofPaths } from "./fault_paths/findings";
import { pill, SEVERITY } from "./head";
import type { Section } from "./section";

/** The start of the line of evidence with the next step. */
const NEXT = "Next: ";

export const findings: Section = {
  id: "findings",
  title: "Findings",
  nav: "Findings",
  half: true,
  applies: (page) => parts(page).length > 0,
  render: (page) => h("div", {}, ...parts(page)),
};

function parts({ diagnoses, paths, paths_diff }: Page): Child[] {
  return [...diagnosed(diagnoses), paths && ofPaths(paths), paths_diff && ofPathsDiff(paths_diff)].filter((part) => part !== null && part !== undefined);
}

/** The first one in full, the others folded. */
function diagnosed([first, ...others]: Diagnosis[]): HTMLElement[] {
  if (!first) return [];
  return [h("article", { class: "finding" }, h("p", { class: "lead" }, ...explained(first.headline), cost(first)), ...reasons(first)), ...others.map((other) => h("details", { class: "finding" }, h("summary", {}, pill(...SEVERITY[other.severity]), " ", other.headline, cost(other)), ...reasons(other)))];
}

const cost = ({ share_of_cpu }: Diagnosis): HTMLElement | null => share_of_cpu && h("span", { class: "faint" }, ` ${percent(share_of_cpu.value)} of the CPU time`);

function reasons({ explanation, evidence }: Diagnosis): Child[] {
  const facts = evidence.filter((line) => !line.startsWith(NEXT));
  return [
    explanation !== "" && h("p", {}, ...explained(explanation)),
    facts.length > 0 && h("h3", {}, "What shows it"),
    facts.length > 0 && h("ul", { class: "evidence" }, ...facts.map((fact) => h("li", {}, ...explained(fact)))),
    ...evidence.filter((line) => line.startsWith(NEXT)).map((line) => h("p", { class: "next" }, h("strong", {}, "Next "), ...prose(line.slice(NEXT.length)))),
  ];
}
