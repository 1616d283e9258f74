/** What to change, and where. */
import type { Page } from "../../data/page";
import type { Advice, Comparison } from "../../data/types";
import { h, type Child } from "../../dom";
import { copyBox } from "../../draw/copy";
import { tabs } from "../../draw/tabs";
import { byteChange, bytes, factor, factorRange, percent, predictedFactor } from "../../format";
import { explained } from "../../glossary";
import { leading, provedBy } from "../../layout/proof";
import type { Section } from "../section";

const exportsOf = ({ faults, memory }: Page): [string, string][][] => faults?.exports ?? memory?.exports ?? [];

export const fix: Section = {
  id: "fix",
  title: "Fix",
  nav: "Fix",
  // The verdict says that no setting fixes it.
  titled: (page) => (page.advice.length > 0 && exportsOf(page).every((settings) => settings.length === 0) ? "By hand" : undefined),
  half: true,
  applies: ({ faults, memory, advice, diagnoses }) => (faults !== undefined && advice.length + diagnoses.length > 0) || (memory !== undefined && advice.length > 0),
  render: (page) => {
    const { advice } = page;
    const [best, ...others] = advice;
    const exports = exportsOf(page);
    const body = (one: Advice, at: number) => adviceBody(one, exports[at] ?? [], at > 0, promise(page, one));
    if (!best) return nothing(page);
    return h(
      "div",
      {},
      ...body(best, 0),
      ...others.map((other, index) => h("details", {}, h("summary", {}, `Or: ${other.headline}`), ...body(other, index + 1))),
    );
  },
};

// Findings after which more may be found (crates/answer/src/plan/symptom.rs).
const UNDECIDED = ["open", "short"];

/** What is said where nothing is advised: a short sentence, and why. */
export const withoutAdvice = ({ diagnoses }: Page): [string, string] =>
  diagnoses.some(({ id }) => UNDECIDED.includes(id))
    ? ["No advice yet.", "Too much of the time is uncertain to say that no setting would help. The finding says what would settle it."]
    : ["Nothing to change.", "No setting that Pagewise knows would make this program noticeably faster, so it recommends none."];

function nothing(page: Page): HTMLElement {
  const [lead, why] = withoutAdvice(page);
  return h("div", {}, h("p", { class: "lead" }, lead), h("p", {}, why));
}

const RISK = {
  low: "low risk: only memory use can change",
  medium: "medium risk: some workloads get slower",
  high: "high risk: behaviour changes, for experts",
};

function predictedGain(advice: Advice): Child[] {
  const predicted = predictedFactor(advice.predicted_speedup);
  // Below that it is no gain (crates/report/src/text/answer.rs).
  if (predicted === null || advice.predicted_speedup.value < 1.01) return ["only runs can tell"];
  const interval = predicted.interval === null ? "" : ` (${predicted.interval})`;
  return [h("strong", {}, predicted.figure), ` in CPU time${interval}`];
}

/** What runs with the setting showed. */
const provedGain = (proved: Comparison): Child[] => {
  const { gain, clock } = leading(proved);
  return [
    h("dt", {}, "Proved speed"),
    h("dd", {}, h("strong", {}, factor(gain.value)), ` in ${clock} (${factorRange(gain)})`),
    h("dt", {}, "Faults left"),
    h("dd", {}, percent(proved.fault_ratio.value)),
    h("dt", {}, "Memory"),
    h("dd", {}, byteChange(proved.rss_change_bytes)),
  ];
};

/** What it would gain, or gained. Of memory, the reason says it. */
function promise({ faults, proof }: Page, advice: Advice): Child[] {
  const proved = provedBy(proof, advice);
  if (proved) return provedGain(proved);
  if (faults === undefined) return [];
  const price = advice.rss_price === 0 ? "no more memory" : `up to ${bytes(advice.rss_price)} more`;
  return [h("dt", {}, "Predicted speed"), h("dd", {}, ...predictedGain(advice)), h("dt", {}, "Faults gone"), h("dd", {}, percent(advice.faults_avoided)), h("dt", {}, "Memory price"), h("dd", {}, price)];
}

function adviceBody(advice: Advice, exports: [string, string][], isFolded: boolean, promised: Child[]): Child[] {
  const panels = exports.map(([name, text]) => ({ name, content: copyBox(text) }));
  return [
    !isFolded && h("p", { class: "lead" }, ...explained(advice.headline)),
    panels.length > 0 && tabs("Where to set it", panels),
    advice.manual !== null && h("p", {}, ...explained(advice.manual)),
    h("p", {}, ...explained(advice.reason)),
    h(
      "dl",
      { class: "promise" },
      ...promised,
      h("dt", {}, "Risk"),
      h("dd", {}, RISK[advice.risk]),
    ),
    advice.caveat !== null && h("p", { class: "warn" }, ...explained(advice.caveat)),
  ];
}
