/** What differs, in sentences: the answers to a few questions, then what explains them. */
import type { FaultDiffPage, Finding, Side } from "../../data/faultDiff";
import { h } from "../../dom";
import { count, counted, nanos } from "../../format";
import type { Section } from "../section";
import { tile, unit, verdict, type Tone } from "../head";

const SHOWN = 8;

export const answer: Section<FaultDiffPage> = {
  id: "answer",
  title: "",
  nav: "",
  applies: () => true,
  render: (report) =>
    h(
      "div",
      {},
      verdict(...badge(report), report.diff.headline),
      h("div", { class: "tiles two" }, side(report, "A", report.diff.a, "k0"), side(report, "B", report.diff.b, "k1")),
      h("section", { class: "card", id: "differences" }, h("h2", {}, "What differs"), findings(report)),
    ),
};

function badge({ diff: { findings, phases = [], method } }: FaultDiffPage): [string, Tone] {
  if (findings.length > 0) return ["Differs", "bad"];
  if (method.not_tested) return ["Not tested", "neutral"];
  return phases.length > 0 ? ["Differs in few phases", "bad"] : ["No difference found", "good"];
}

function side(report: FaultDiffPage, letter: string, side: Side, ink: string): HTMLElement {
  const shift = letter === "A" ? { now: report.diff.whole.a, raw: report.diff.whole.a_raw } : { now: report.diff.whole.b, raw: report.diff.whole.b_raw };
  return tile(
    [h("span", { class: `swatch kbar ${ink}` }), `${letter}  ${side.name}`],
    [nanos(shift.now.p50_ns), unit(`median, ${nanos(shift.now.p99_ns)} 99th percentile`)],
    `${nanos(shift.raw.p50_ns)} and ${nanos(shift.raw.p99_ns)} as traced; tracing costs ${nanos(side.calibration.per_call_ns)} per call`,
    `${counted(side.faults, "fault")}${side.duration_ns === null ? "" : ` in ${nanos(side.duration_ns)}`}, ${count(side.distinct_paths)} different paths`,
    ...side.missing.map(({ count: n, what }) => `left out: ${count(n)} ${what}`),
  );
}

function findings(report: FaultDiffPage): HTMLElement {
  const { findings, phases = [], suspicions = [], method } = report.diff;
  const others = [list("In these recordings, but in few of their phases: another may differ", phases), list("Looks different, but could be chance or the tracer's cost", suspicions)];
  if (findings.length === 0) {
    const nothing = method.not_tested ?? `Nothing differs beyond chance by enough to matter, in ${count(method.tests)} figures tested.`;
    return h("div", {}, phases.length === 0 && h("p", {}, nothing), ...others);
  }
  const item = (finding: Finding) => h("li", {}, finding.sentence);
  const first = h("ol", { class: "evidence findings" }, ...findings.slice(0, SHOWN).map(item));
  const how = `${count(method.questions)} figures say how many faults there are, of which kinds, and how long they take; ${count(method.tests - method.questions)} more explain what was found. Traces that are alike show anything in ${Number((method.level * 100).toPrecision(2))} % of comparisons.`;
  const more = findings.length > SHOWN && h("details", {}, h("summary", {}, `${count(findings.length - SHOWN)} more`), h("ol", { class: "evidence findings", start: SHOWN + 1 }, ...findings.slice(SHOWN).map(item)));
  return h("div", {}, first, more, h("p", { class: "faint" }, how), ...others);
}

/** What is told with less certainty than findings. */
function list(title: string, found: Finding[]): HTMLElement | null {
  if (found.length === 0) return null;
  return h("div", {}, h("h3", {}, title), h("ul", { class: "evidence findings" }, ...found.slice(0, SHOWN).map((finding) => h("li", {}, finding.sentence))));
}
