/** The first screen: verdict, key figures, why, fix. */
import { ended } from "../data/ending";
import type { Advice, Diagnosis, Report, Severity } from "../data/types";
import { h, type Child } from "../dom";
import { copyBox } from "../draw/copy";
import { tabs } from "../draw/tabs";
import { bytes, compact, count, factor, factorRange, nanos, percent, percentRange, percentSeen, predictedFactor } from "../format";
import { explained, term } from "../glossary";
import { avoidable, cpuParts, elapsedParts, faultNanos, type Part } from "../layout/cost";
import { missingLines } from "../layout/missing";
import type { Section } from "./section";
import { tile, verdict, type Tone } from "./head";

export const SEVERITY: Record<Severity, [badge: string, tone: Tone]> = {
  severe: ["Severe", "bad"],
  costly: ["Costly", "bad"],
  note: ["Worth knowing", "neutral"],
  healthy: ["Healthy", "good"],
};

export const answer: Section = {
  id: "answer",
  title: "",
  nav: "",
  applies: () => true,
  render: (report) =>
    h(
      "div",
      {},
      head(report),
      h("div", { class: "tiles" }, ...tiles(report)),
      h("div", { class: "accounts" }, timeBar("CPU time", report.findings.cost.user + report.findings.cost.system, cpuParts(report.findings)), timeBar("elapsed time", report.findings.cost.wall, elapsedParts(report.findings))),
      caution(report),
      h("div", { class: "columns" }, why(report), fix(report)),
    ),
};

function worst(report: Report): Severity | null {
  const order: Severity[] = ["severe", "costly", "note", "healthy"];
  return order.find((severity) => report.findings.diagnoses.some((d) => d.severity === severity)) ?? null;
}

function head(report: Report): HTMLElement {
  const severity = worst(report);
  const [badge, tone]: [string, Tone] = severity ? SEVERITY[severity] : ["Not judged", "neutral"];
  const text = report.findings.verdict || "No verdict was reached: too little was recorded.";
  return verdict(badge, tone, text, ending(report));
}

function ending(report: Report): HTMLElement | null {
  const { ending } = report.findings;
  if (typeof ending === "object" && "exited" in ending && ending.exited === 0) return null;
  return h("p", { class: "warn" }, `The program ${ended(ending)}.`);
}

function tiles(report: Report): HTMLElement[] {
  const tiles = [lostTile(report), faultTile(report), avoidableTile(report), gainTile(report)];
  return tiles.filter((tile) => tile !== null);
}

const inked = (figure: string, ink: string | false): Child => (ink ? h("span", { class: ink }, figure) : figure);

function lostTile(report: Report): HTMLElement | null {
  const { share_of_cpu } = report.findings.time;
  const lost = faultNanos(report.findings);
  const { cost } = report.findings;
  if (!share_of_cpu || lost === null) return null;
  const range = percentRange(share_of_cpu);
  return tile(
    ["Time lost to ", ...explained("page faults")],
    inked(percentSeen(share_of_cpu), share_of_cpu.value > 0.1 && "churn-ink"),
    `${nanos(lost)} of ${nanos(cost.user + cost.system)} CPU time`,
    range && `95 % interval ${range}`,
  );
}

function faultTile(report: Report): HTMLElement {
  const { cost } = report.findings;
  const faults = cost.minor_faults + cost.major_faults;
  const rate = cost.wall > 0 ? `${compact(faults / (cost.wall / 1e9))} per second` : null;
  const disk = cost.major_faults === 0 ? "none needed the disk" : `${count(cost.major_faults)} needed the disk`;
  return tile("Page faults", count(faults), rate, disk);
}

function avoidableTile(report: Report): HTMLElement | null {
  const share = avoidable(report.findings, report.churn_causes);
  if (share === null) return null;
  const note = share > 0.01 ? "memory returned, then requested again" : "memory is kept once it is allocated";
  const name = term("Avoidable faults", "Faults on pages that the program had before and gave back to the kernel (churn). Had it kept them, these faults would not have happened.");
  return tile(name, inked(percent(share), share > 0.1 && "churn-ink"), note);
}

function gainTile(report: Report): HTMLElement {
  const { proof, advice, cost } = report.findings;
  const proved = proof?.confirmation ?? proof?.comparisons.find((c) => c.arm === proof.winner);
  if (proved && proved.verdict === "faster") {
    return tile(
      ["Speed with the fix, ", h("strong", { class: "good-ink" }, "proved")],
      inked(factor(proved.wall_speedup.value), "good-ink"),
      `in elapsed time, 95 % interval ${factorRange(proved.wall_speedup)}`,
      `${count(proved.pairs)} pairs of runs`,
    );
  }
  const [best] = advice;
  if (!best && cost.max_rss === 0) return tile("Elapsed", nanos(cost.wall));
  if (!best) return tile("Peak memory", bytes(cost.max_rss), `${nanos(cost.wall)} elapsed`);
  const predicted = predictedFactor(best.predicted_speedup);
  if (predicted === null) return tile("Speed with the fix", "?", "only runs can tell", "doctor --prove measures it");
  return tile(
    term("Speed with the fix, predicted", "How much more work the same CPU time would do, estimated from this one run. pagewise doctor --prove measures it."),
    predicted.figure,
    ["in CPU time", predicted.interval].filter((part) => part !== null).join(", "),
    "not yet proved",
  );
}

function timeBar(of: string, all: number, parts: Part[]): HTMLElement | null {
  if (parts.length === 0) return null;
  const words = parts.map((part) => `${part.name} ${percent(part.share)}`).join(", ");
  const bar = h("div", { class: "cpu-bar", role: "img", "aria-label": `${of}: ${words}` });
  for (const part of parts) {
    const piece = h("div", { class: `piece ${part.id}` });
    piece.style.width = `${part.share * 100}%`;
    bar.append(piece);
  }
  return h(
    "figure",
    { class: "cpu" },
    h("figcaption", {}, `Where the ${nanos(all)} of ${of} went`),
    bar,
    h("ul", { class: "legend" }, ...parts.map((part) => h("li", {}, h("span", { class: `swatch ${part.id}` }), `${part.name} `, h("strong", {}, percent(part.share)), ` ${nanos(part.nanos)}`))),
  );
}

/** Beside the figures: that something is missing from them, and where it is told. */
function caution(report: Report): HTMLElement | null {
  const [first, ...others] = missingLines(report);
  if (first === undefined) return null;
  const more = others.length > 0 ? ` and ${count(others.length)} more` : "";
  return h("p", { class: "faint caution" }, "Not in these figures: ", first.replace(/\.$/, ""), `${more}. `, h("a", { href: "#missing" }, "What is missing"));
}

function why(report: Report): HTMLElement | null {
  const { diagnoses } = report.findings;
  if (diagnoses.length === 0) return null;
  const [first, ...others] = diagnoses;
  return h(
    "section",
    { class: "card", id: "why" },
    h("h2", {}, first?.severity === "healthy" ? "What was found" : "Why"),
    first && diagnosis(first),
    ...others.map((other) => h("details", {}, h("summary", {}, other.headline), diagnosis(other, true))),
  );
}

function diagnosis(diagnosis: Diagnosis, isFolded = false): HTMLElement {
  return h(
    "div",
    {},
    !isFolded && h("p", { class: "lead" }, ...explained(diagnosis.headline)),
    diagnosis.explanation !== "" && h("p", {}, ...explained(diagnosis.explanation)),
    diagnosis.evidence.length > 0 && h("h3", {}, "What shows it"),
    h("ul", { class: "evidence" }, ...diagnosis.evidence.map((fact) => h("li", {}, ...explained(fact)))),
  );
}

function fix(report: Report): HTMLElement | null {
  const { advice, diagnoses } = report.findings;
  const [best, ...others] = advice;
  if (!best) {
    if (diagnoses.length === 0) return null;
    return h("section", { class: "card", id: "fix" }, h("h2", {}, "Fix"), h("p", { class: "lead" }, "Nothing to change."), h("p", {}, "No setting that Pagewise knows would make this program noticeably faster, so it recommends none."));
  }
  return h(
    "section",
    { class: "card", id: "fix" },
    h("h2", {}, "Fix"),
    adviceBody(best, report.exports[0] ?? [], false),
    ...others.map((other, index) =>
      h("details", {}, h("summary", {}, `Or: ${other.headline}`), adviceBody(other, report.exports[index + 1] ?? [], true)),
    ),
  );
}

const RISK = {
  low: "low risk: only memory use can change",
  medium: "medium risk: some workloads get slower",
  high: "high risk: behaviour changes, for experts",
};

function predictedGain(advice: Advice): Child[] {
  const predicted = predictedFactor(advice.predicted_speedup);
  if (predicted === null) return ["only runs can tell"];
  const interval = predicted.interval === null ? "" : ` (${predicted.interval})`;
  return [h("strong", {}, predicted.figure), ` in CPU time${interval}`];
}

function adviceBody(advice: Advice, exports: [string, string][], isFolded: boolean): HTMLElement {
  const panels = exports.map(([name, text]) => ({ name, content: copyBox(text) }));
  const price = advice.rss_price === 0 ? "no more memory" : `up to ${bytes(advice.rss_price)} more`;
  return h(
    "div",
    {},
    !isFolded && h("p", { class: "lead" }, ...explained(advice.headline)),
    panels.length > 0 && tabs("Where to set it", panels),
    advice.manual !== null && h("p", {}, ...explained(advice.manual)),
    h("p", {}, ...explained(advice.reason)),
    h(
      "dl",
      { class: "promise" },
      h("dt", {}, "Predicted speed"),
      h("dd", {}, ...predictedGain(advice)),
      h("dt", {}, "Faults gone"),
      h("dd", {}, percent(advice.faults_avoided)),
      h("dt", {}, "Memory price"),
      h("dd", {}, price),
      h("dt", {}, "Risk"),
      h("dd", {}, RISK[advice.risk]),
    ),
    advice.caveat !== null && h("p", { class: "warn" }, ...explained(advice.caveat)),
  );
}
