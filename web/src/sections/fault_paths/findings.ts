/** What stands out in the faults of a trace. */
import type { FaultPathsPage } from "../../data/faultPaths";
import { h } from "../../dom";
import { nanos, percent } from "../../format";
import { kindsOf } from "./kinds";

/** What stands out, each with its number. */
export function findings(report: FaultPathsPage): HTMLElement | null {
  const found = [heaviest(report), tail(report), contributor(report), modes(report)].filter((line) => line !== null);
  return found.length > 0 ? h("ul", { class: "evidence" }, ...found.map((line) => h("li", {}, line))) : null;
}

function heaviest(report: FaultPathsPage): string | null {
  const [heaviest] = [...report.findings.classes].sort((a, b) => b.time_share - a.time_share);
  if (!heaviest || heaviest.time_share <= heaviest.share * 1.5) return null;
  return `${kindsOf(report).name(heaviest.class)}: ${percent(heaviest.share)} of the faults, but ${percent(heaviest.time_share)} of their time.`;
}

function tail(report: FaultPathsPage): string | null {
  const contrast = report.findings.contrasts.find((contrast) => contrast.class === null);
  const [excess] = contrast?.excess ?? [];
  if (!contrast || !excess) return null;
  return `The slowest ${percent(1 - contrast.quantile)} take ${nanos(contrast.tail_mean_ns)} on average against ${nanos(contrast.body_mean_ns)}; ${percent(excess.share)} of the difference is ${excess.wait ? "" : "own time of "}${excess.name}${excess.wait ? "" : "()"}.`;
}

function contributor(report: FaultPathsPage): string | null {
  const [first, second] = report.findings.contributors;
  if (!first) return null;
  const more = second ? `, ${second.function}() ${percent(second.corrected_time_share)}` : "";
  return `${first.function}() itself takes ${percent(first.corrected_time_share)} of the time${more}.`;
}

function modes(report: FaultPathsPage): string | null {
  const { modes } = report.findings.latency.corrected;
  if (modes.length < 2) return null;
  const each = [...modes].sort((a, b) => b.share - a.share).slice(0, 4).sort((a, b) => a.peak_ns - b.peak_ns);
  return `Latencies gather at ${each.map((mode) => `${nanos(mode.peak_ns)} (${percent(mode.share)})`).join(", ")}.`;
}
