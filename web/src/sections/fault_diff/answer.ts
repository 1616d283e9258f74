/** Whether two traces differ, and a description of each. */
import type { FaultDiffPage, Side } from "../../data/faultDiff";
import { h } from "../../dom";
import { count, counted, nanos } from "../../format";
import type { Answer } from "../answer";
import { DIFFERS, tile, unit, type Tone } from "../head";

export const answer: Answer<FaultDiffPage> = {
  title: "Both traces",
  nav: "Traces",
  badge,
  headline: (_, { verdict }) => verdict,
  account: (report) => [h("div", { class: "tiles two" }, side(report, "A", report.diff.a, "k0"), side(report, "B", report.diff.b, "k1"))],
};

function badge({ diff: { findings, phases = [], method } }: FaultDiffPage): [string, Tone] {
  if (findings.length > 0) return DIFFERS.yes;
  if (method.not_tested) return ["Not tested", "neutral"];
  return phases.length > 0 ? ["Differs in few phases", "bad"] : DIFFERS.no;
}

function side(report: FaultDiffPage, letter: string, side: Side, ink: string): HTMLElement {
  const shift = letter === "A" ? { now: report.diff.whole.a, raw: report.diff.whole.a_raw } : { now: report.diff.whole.b, raw: report.diff.whole.b_raw };
  return tile(
    [h("span", { class: `swatch kbar ${ink}` }), `${letter}  ${side.name}`],
    [nanos(shift.now.p50_ns), unit(`median, ${nanos(shift.now.p99_ns)} 99th percentile`)],
    `${nanos(shift.raw.p50_ns)} and ${nanos(shift.raw.p99_ns)} as traced; tracing costs ${nanos(side.calibration.per_call_ns)} per call`,
    `${counted(side.faults, "fault")}${side.duration_ns === null ? "" : ` in ${nanos(side.duration_ns)}`}, ${count(side.distinct_paths)} different paths`,
  );
}
