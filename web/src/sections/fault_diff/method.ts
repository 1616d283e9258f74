/** How the test was made, so that the reader can judge it. */
import type { FaultDiffPage, Side } from "../../data/faultDiff";
import { h } from "../../dom";
import { count, nanos } from "../../format";

export function tested(report: FaultDiffPage): HTMLElement {
  const { method, a, b } = report.diff;
  const side = (letter: string, side: Side) => `${letter}: ${count(side.blocks)} blocks, correlation of neighbours ${side.block_correlation.toFixed(2)}; tracing costs ${nanos(side.calibration.per_call_ns)} ± ${nanos(side.calibration.error_ns)} per call${side.correction_exceeds_signal ? ", more than half of the traced time" : ""}`;
  return h(
    "div",
    {},
    method.not_tested !== null ? h("p", { class: "warn" }, `Nothing was tested: ${method.not_tested}`) : h("p", {}, `A few questions were asked first (how many faults, which kinds, how long at the median, in the tail and on average: ${count(method.questions)} figures); what explains an answer was tested only if there was one (${count(method.tests)} figures in all), and only what matters is shown. Faults close in time are correlated, so whole blocks of them were permuted between the traces (${count(method.permutations)} times) and resampled for the intervals (${count(method.resamples)} times), with seed ${method.seed}. The chance that traces which are alike show any difference is ${Number((method.level * 100).toPrecision(2))} %.`),
    h("ul", { class: "evidence" }, h("li", {}, side("A", a)), h("li", {}, side("B", b))),
  );
}
