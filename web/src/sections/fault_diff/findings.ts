/** What differs, in sentences: the answers to a few questions, then what explains them. */
import type { FaultDiffPage, Finding } from "../../data/faultDiff";
import { h } from "../../dom";
import { count } from "../../format";

const SHOWN = 8;

export function findings(report: FaultDiffPage): HTMLElement {
  const { findings, phases = [], suspicions = [], method } = report.diff;
  const others = [list("Differs in a few phases of these recordings; others may not differ", phases), list("Looks different, but may be chance or the tracer's cost", suspicions)];
  if (findings.length === 0) {
    const nothing = method.not_tested ?? `Nothing differs beyond chance by enough to matter, in ${count(method.tests)} figures tested.`;
    return h("div", {}, phases.length === 0 && h("p", {}, nothing), ...others);
  }
  const item = (finding: Finding) => h("li", {}, finding.sentence);
  const first = h("ol", { class: "evidence findings" }, ...findings.slice(0, SHOWN).map(item));
  const how = `${count(method.questions)} figures say how many faults there are, of which kinds, and how long they take; ${count(method.tests - method.questions)} more explain what was found. Traces that are alike show any difference in ${Number((method.level * 100).toPrecision(2))} % of comparisons.`;
  const more = findings.length > SHOWN && h("details", {}, h("summary", {}, `${count(findings.length - SHOWN)} more`), h("ol", { class: "evidence findings", start: SHOWN + 1 }, ...findings.slice(SHOWN).map(item)));
  return h("div", {}, first, more, h("p", { class: "faint" }, how), ...others);
}

/** Statements that are less certain than findings. */
function list(title: string, found: Finding[]): HTMLElement | null {
  if (found.length === 0) return null;
  return h("div", {}, h("h3", {}, title), h("ul", { class: "evidence findings" }, ...found.slice(0, SHOWN).map((finding) => h("li", {}, finding.sentence))));
}
