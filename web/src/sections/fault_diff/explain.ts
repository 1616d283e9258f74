/** The parts of the difference of the means, and of the tails. */
import type { Explanation, FaultDiffPage, Part } from "../../data/faultDiff";
import { h } from "../../dom";
import { strip } from "../../draw/bars";
import { signedNanos } from "../../draw/shift";
import { count, nanos, percent } from "../../format";
import type { Section } from "../section";
import { kindName } from "./figures";

/** Number of parts shown individually. */
const SHOWN = 10;

const CAUSES: Record<Part["cause"], string> = { mix: "another mix of kinds", function: "", runnable: "waiting for a CPU", blocked: "asleep", off_cpu: "off the CPU, reason unknown", lock_before: "waiting for the lock before the fault", rest: "all smaller parts" };

export const explain: Section<FaultDiffPage> = {
  id: "explain",
  title: "What explains the difference",
  nav: "Explanation",
  applies: (report) => report.diff.mean.parts.length > 0 || report.diff.tail.parts.length > 0,
  intro: () => "The difference of the mean fault, and of the mean of the slowest hundredth, in parts that add up to it.",
  render: (report) => h("div", { class: "columns" }, column(report, "Mean of all faults", report.diff.mean), column(report, "Mean of the slowest hundredth", report.diff.tail, contrary(report))),
};

/** Why the mean of the slowest hundredth may differ the other way than the 99th percentile. */
function contrary({ diff }: FaultDiffPage): string | null {
  const pair = diff.whole.quantiles.find(({ quantile }) => quantile === 0.99)?.ns.corrected;
  if (pair === undefined || diff.tail.change_ns * (pair.b - pair.a) >= 0) return null;
  return `The 99th percentile ${pair.b > pair.a ? "rose" : "fell"} all the same, from ${nanos(pair.a)} to ${nanos(pair.b)}: the faults beyond it are few, and one of them can decide their mean.`;
}

function column(report: FaultDiffPage, title: string, found: Explanation, note: string | null = null): HTMLElement {
  const { corrected, raw } = found.figures;
  const most = Math.max(...found.parts.map((part) => Math.abs(part.ns)), 1e-9);
  // If parts nearly cancel out, shares of the remainder are meaningless.
  const inShares = most < 3 * Math.abs(found.change_ns);
  const shown = found.parts.slice(0, SHOWN);
  const rest = found.parts.length - shown.length;
  return h(
    "div",
    {},
    h("h3", {}, title),
    h("p", {}, `${nanos(corrected.a)} → ${nanos(corrected.b)}, ${signedNanos(found.change_ns)} per fault (as traced ${nanos(raw.a)} → ${nanos(raw.b)}).`),
    note !== null && h("p", {}, note),
    found.sentences.length > 1 && h("ul", { class: "evidence" }, ...found.sentences.slice(1).map((sentence) => h("li", {}, sentence))),
    found.parts.length > 0 && h("table", { class: "bars" }, h("caption", { class: "sr" }, `Parts of the difference: ${title}`), h("thead", {}, h("tr", {}, h("th", {}, "Part"), h("th", { class: "bar-cell" }, h("span", { class: "sr" }, "bar")), ...["Per fault", ...(inShares ? ["Share"] : [])].map((head) => h("th", { class: "number" }, head)))), h("tbody", {}, ...shown.map((part) => row(report, part, most, inShares ? found.change_ns : null)))),
    rest > 0 && h("p", { class: "faint" }, `${count(rest)} smaller parts make up ${signedNanos(found.parts.slice(SHOWN).reduce((sum, part) => sum + part.ns, 0))}.`),
  );
}

/** Bars grow from the middle: to the right where B takes longer. */
function row(report: FaultDiffPage, part: Part, most: number, whole: number | null): HTMLElement {
  const share = Math.abs(part.ns) / most / 2;
  const fill = strip(`kbar ${part.ns >= 0 ? "k1" : "k0"}`, share);
  fill.style.marginLeft = `${part.ns >= 0 ? 50 : 50 - share * 100}%`;
  const name = part.cause === "function" ? h("code", {}, part.function ?? "") : CAUSES[part.cause];
  return h("tr", {}, h("th", { scope: "row" }, name, part.class !== null && h("div", { class: "faint" }, kindName(report, part.class))), h("td", { class: "bar-cell" }, fill), h("td", { class: "number" }, signedNanos(part.ns)), whole !== null && h("td", { class: "number" }, part.ns / whole < 0 ? `−${percent(-part.ns / whole)}` : percent(part.ns / whole)));
}
