/** What is odd or slow, with its evidence and what to do next. */
import type { ProfileData } from "../../data/profile";
import type { Diagnosis } from "../../data/types";
import { h } from "../../dom";
import { copyBox } from "../../draw/copy";
import { percent } from "../../format";
import { SEVERITY } from "../answer";
import { pill } from "../head";
import type { Section } from "../section";

/** What begins the line of evidence that says what to do. */
const NEXT = "Next: ";

export const findings: Section<ProfileData> = {
  id: "findings",
  title: "What stands out",
  nav: "Findings",
  applies: ({ findings }) => findings.diagnoses.length > 0,
  render: ({ findings }) => h("div", {}, ...findings.diagnoses.map(diagnosis)),
};

function diagnosis(found: Diagnosis): HTMLElement {
  const share = found.share_of_cpu;
  const [next, facts] = [found.evidence.filter((line) => line.startsWith(NEXT)), found.evidence.filter((line) => !line.startsWith(NEXT))];
  return h(
    "article",
    { class: "finding" },
    h("h3", {}, pill(...SEVERITY[found.severity]), ` ${found.headline}`, share && h("span", { class: "faint" }, ` ${percent(share.value)} of the CPU time`)),
    h("p", {}, found.explanation),
    facts.length > 0 && h("ul", { class: "evidence" }, ...facts.map((fact) => h("li", {}, fact))),
    ...next.map((line) => h("p", { class: "next" }, h("strong", {}, "Next "), line.slice(NEXT.length))),
  );
}

/** A remedy: the command in it can be copied where it says one in quotes or after a colon. */
export function remedy(text: string): HTMLElement {
  const command = /`([^`]+)`/.exec(text)?.[1];
  return h("div", {}, text, command !== undefined && copyBox(command));
}
