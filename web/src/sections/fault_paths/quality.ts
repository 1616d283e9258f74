/** The basis of the figures: losses, the correction and its error, whether times add up. */
import type { Calibration, FaultPathsPage } from "../../data/faultPaths";
import { h } from "../../dom";
import { count, counted, nanos, percent } from "../../format";

/** The basis of the figures of a trace. */
export function quality(report: FaultPathsPage, losses: string[]): HTMLElement {
  const nothing = losses.length === 0 && report.findings.faults > 0 && h("p", {}, "Nothing was left out: every call in the trace was read and is complete.");
  return h(
    "div",
    { class: "columns" },
    h("div", {}, h("h3", {}, "Correction for the tracer"), ...correction(report)),
    h("div", {}, h("h3", {}, "Do the times add up?"), h("p", {}, conservation(report)), nothing, h("h3", {}, "Taken for granted"), lines(assumptions(report), "Nothing.")),
  );
}

function lines(texts: string[], none: string): HTMLElement {
  if (texts.length === 0) return h("p", {}, none);
  return h("ul", { class: "evidence" }, ...texts.map((text) => h("li", {}, text)));
}

function correction(report: FaultPathsPage): HTMLElement[] {
  const { calibration, latency, correction_exceeds_signal } = report.findings;
  if (calibration.source === "nothing") return [h("p", {}, "None: the trace shows too few calls inside faults to tell what tracing them cost.")];
  if (calibration.source === "withdrawn") return [h("p", { class: "warn" }, withdrawal(calibration)), h("p", {}, REMEDY)];
  const from = ORIGINS[calibration.source];
  const calls = (latency.raw.sum_ns - latency.corrected.sum_ns) / Math.max(1, calibration.per_call_ns);
  const error = (calibration.error_ns * calls) / Math.max(1, latency.corrected.sum_ns);
  return [
    h("p", {}, `Every traced call inside a fault costs ${nanos(calibration.per_call_ns)} ± ${nanos(calibration.error_ns)} (95 %), ${nanos(calibration.inside_ns)} of it inside the call and the rest in its caller; ${from}.`),
    h("p", {}, `It takes the mean fault from ${nanos(latency.raw.mean_ns)} to ${nanos(latency.corrected.mean_ns)}; its error is ± ${percent(error)} of what is left.`),
    ...(correction_exceeds_signal ? [h("p", { class: "warn" }, "The correction takes more than half of the mean: where two paths differ by less than the error times their difference in calls, the difference may be the tracer's.")] : []),
  ];
}

const ORIGINS = {
  root_only: "measured by comparing with a trace of the outermost function alone",
  own_trace: "estimated from those calls of this trace that do least. A second trace of the outermost function alone measures it: pagewise report --calibrate ROOT-ONLY TRACE",
  several: "a mean over several sources, each corrected by its own cost",
};

const REMEDY = "Capture again with nothing else on the CPU (under emulation: in virtual time, tests/qemu/guest -i), or pass a trace of the same workload with the root alone: pagewise report --calibrate ROOT-ONLY TRACE.";

/** Why times are not corrected. */
export function withdrawal({ withdrawn }: Calibration): string {
  const all = "All times are as traced, with the tracer's own cost in them, since no single cost fits this trace";
  if (withdrawn === null) return `${all}.`;
  const { misfit } = withdrawn;
  const cost = nanos(withdrawn.per_call_ns);
  if ("clamped" in misfit) return `${all}: the calls that do least show ${cost} per call, but ${percent(misfit.clamped)} of the faults took less than that for their calls.`;
  if ("unbalanced" in misfit) return `${all}: with ${cost} per call taken off, the calls of the faults add up to ${misfit.unbalanced.toFixed(2)} times the faults.`;
  return `${all}: the cost of a call changed during the trace, ×${misfit.uneven.toFixed(1)} from the tenth to the ninetieth percentile of the calls that do least.`;
}

function conservation(report: FaultPathsPage): string {
  const { faults, violations, without_durations } = report.findings.conservation;
  const untimed = without_durations > 0 ? ` ${counted(without_durations, "fault")} have no duration for every call; their times come from the time column.` : "";
  if (faults === 0) return "There is nothing to add up: no complete fault is in this trace.";
  if (violations === 0) return `Yes: in every call of ${counted(faults, "fault")}, own time, calls, interrupts and time off the CPU make up the whole, within the printed precision.${untimed}`;
  return `In ${counted(violations, "call")} of ${counted(faults, "fault")} the parts exceed the whole by more than the printed precision.${untimed}`;
}

function assumptions(report: FaultPathsPage): string[] {
  const { sleep_time, depth_limit, interrupts_by_place, trees_beyond_limit } = report.findings.reading;
  return [
    sleep_time === "assumed" ? "Durations include time asleep (the kernel's default; no wait in the trace tells)" : "",
    sleep_time === "excluded" ? "Durations do not include time asleep: waits in the trace are longer than the calls around them" : "",
    depth_limit !== null ? `The trace looks cut below level ${count(depth_limit)} (max_graph_depth): the cost of deeper calls cannot be corrected` : "",
    interrupts_by_place > 0 ? `${counted(interrupts_by_place, "call")} inside interrupts, recognised by being one level too deep, not by name` : "",
    trees_beyond_limit > 0 ? `${counted(trees_beyond_limit, "call tree")} are beyond those that are looked up quickly` : "",
  ].filter((line) => line !== "");
}
