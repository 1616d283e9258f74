/** What faults cost: verdict, key figures, accounts of time. */
import type { Page } from "../../data/page";
import type { Report } from "../../data/types";
import { h, type Child } from "../../dom";
import { timeBar } from "../../draw/timeBar";
import { bytes, compact, count, factor, factorRange, nanos, percent, percentRange, percentSeen, predictedFactor } from "../../format";
import { explained, term } from "../../glossary";
import { avoidable, cpuParts, elapsedParts, faultNanos } from "../../layout/cost";
import { leading } from "../../layout/proof";
import type { Answer } from "../answer";
import { failure, SEVERITY, tile } from "../head";

export const answer: Answer<Report> = {
  title: "Page faults",
  nav: "Page faults",
  badge: (_, { diagnoses: [first] }) => (first ? SEVERITY[first.severity] : ["Not judged", "neutral"]),
  headline: (_, { verdict }) => verdict || "No verdict was reached: too little was recorded.",
  below: ({ findings }) => [failure(findings.ending)],
  account: (report, page) => {
    const { cost } = report.findings;
    return [
      h("div", { class: "tiles" }, ...tiles(report, page)),
      h("div", { class: "accounts" }, timeBar("CPU time", cost.user + cost.system, cpuParts(report.findings)), timeBar("elapsed time", cost.wall, elapsedParts(report.findings))),
    ];
  },
};

function tiles(report: Report, page: Page): HTMLElement[] {
  const tiles = [lostTile(report), faultTile(report), avoidableTile(report), gainTile(report, page)];
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
  const name = term("Avoidable faults", "Faults on pages that the program had before and returned to the kernel (churn). Had it kept them, these faults would not have happened.");
  return tile(name, inked(percent(share), share > 0.1 && "churn-ink"), note);
}

/** Advice by hand that changes less than this promises no speed. */
const LEAST_GAIN = 1.05;

function gainTile({ findings: { cost }, exports }: Report, { proof, advice }: Page): HTMLElement {
  const proved = proof?.confirmation ?? proof?.comparisons.find((c) => c.arm === proof.winner);
  if (proved && proved.verdict === "faster") {
    const { gain, clock } = leading(proved);
    return tile(
      ["Speed with the fix, ", h("strong", { class: "good-ink" }, "proved")],
      inked(factor(gain.value), "good-ink"),
      `in ${clock}, 95 % interval ${factorRange(gain)}`,
      `${count(proved.pairs)} pairs of runs`,
    );
  }
  const byHand = (exports[0]?.length ?? 0) === 0 && (advice[0]?.predicted_speedup.value ?? 0) < LEAST_GAIN;
  const best = byHand ? undefined : advice[0];
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
