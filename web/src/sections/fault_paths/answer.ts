/** The first screen: how long faults take, which kinds there are, and the basis of the figures. */
import type { Calibration, FaultPathsPage, TimeSplit } from "../../data/faultPaths";
import { h } from "../../dom";
import { compact, count, interval, nanos, percent } from "../../format";
import { term } from "../../glossary";
import type { Answer } from "../answer";
import { tile, type Tone } from "../head";

export const answer: Answer<FaultPathsPage> = {
  title: "Faults of the trace",
  nav: "Trace",
  badge,
  headline: (_, { verdict }) => verdict,
  below: ({ findings }) => [findings.faults === 0 && h("p", {}, "Trace one of exc_page_fault, do_user_addr_fault, __do_page_fault or handle_mm_fault with all that it calls, as pagewise trace does.")],
  account: (report) => [report.findings.faults > 0 && h("div", { class: "tiles" }, ...tiles(report)), report.findings.split.total_ns > 0 && splitBar(report.findings.split), caution(report)],
};

/** How far the figures can be trusted. */
function badge({ findings }: FaultPathsPage): [string, Tone] {
  if (findings.faults === 0) return ["No faults", "neutral"];
  if (findings.calibration.source === "withdrawn") return ["Not corrected for tracing", "bad"];
  return findings.correction_exceeds_signal ? ["Mostly the tracer's time", "bad"] : ["Corrected for tracing", "good"];
}

function tiles(report: FaultPathsPage): HTMLElement[] {
  const { faults, duration_ns, latency, distinct_paths, calibration } = report.findings;
  const rate = duration_ns !== null && duration_ns > 0 ? `${compact(faults / (duration_ns / 1e9))} per second for ${nanos(duration_ns)}` : "the trace has no times";
  const { raw, corrected, bounds } = latency;
  return [
    tile(["Page faults"], count(faults), rate, `${count(distinct_paths)} different paths`),
    tile([term("Median on the CPU", CORRECTED)], interval(corrected.p50_ns, bounds?.p50_ns), `${nanos(raw.p50_ns)} as traced`, `mean ${interval(corrected.mean_ns, bounds?.mean_ns)}`),
    tile([term("99th percentile", CORRECTED)], interval(corrected.p99_ns, bounds?.p99_ns), `${nanos(raw.p99_ns)} as traced`, `longest ${nanos(corrected.max_ns)}`),
    tile([term("Tracing cost per call", "function_graph makes every traced call slower by a constant; a fault makes dozens of calls, so it appears many times longer than it is. Corrected figures exclude this cost.")], bounds === null ? "–" : nanos(calibration.per_call_ns), calibrationWords(calibration)),
  ];
}

const CORRECTED = "Without the tracer's own cost: the traced time minus a constant for every call traced inside. The time as traced is shown below.";

function calibrationWords({ source, error_ns }: Calibration): string {
  const error = `± ${nanos(error_ns)}`;
  if (source === "root_only") return `${error}, measured against the root alone`;
  if (source === "several") return `${error}, the mean of several sources' own`;
  if (source === "withdrawn") return "withdrawn: no single cost fits this trace";
  return source === "own_trace" ? `${error}, from the calls that do least` : "no correction: too few calls inside faults";
}

const PARTS: [keyof TimeSplit, string, string][] = [
  ["self_ns", "the outermost function itself", "k1"],
  ["children_ns", "what it called, on the CPU", "k0"],
  ["interrupts_ns", "interrupts", "k3"],
  ["runnable_ns", "waiting for a CPU", "k2"],
  ["blocked_ns", "asleep", "k4"],
  ["off_cpu_ns", "off the CPU, reason unknown", "kx"],
];

/** An account of all the time, as traced. */
function splitBar(split: TimeSplit): HTMLElement {
  const parts = PARTS.map(([key, name, ink]) => ({ name, ink, ns: split[key] })).filter((part) => part.ns > 0);
  const words = parts.map((part) => `${part.name} ${percent(part.ns / split.total_ns)}`).join(", ");
  const bar = h("div", { class: "cpu-bar", role: "img", "aria-label": `Time in faults: ${words}` });
  for (const part of parts) {
    const piece = h("div", { class: `piece kbar ${part.ink}` });
    piece.style.width = `${(part.ns / split.total_ns) * 100}%`;
    bar.append(piece);
  }
  return h(
    "figure",
    { class: "cpu" },
    h("figcaption", {}, `Where the ${nanos(split.total_ns)} in faults went, as traced`),
    bar,
    h("ul", { class: "legend" }, ...parts.map((part) => h("li", {}, h("span", { class: `swatch kbar ${part.ink}` }), `${part.name} `, h("strong", {}, percent(part.ns / split.total_ns)), ` ${nanos(part.ns)}`))),
  );
}

/** Shown if most of the traced time is the tracer's own. */
function caution({ findings: { correction_exceeds_signal, latency } }: FaultPathsPage): HTMLElement | null {
  if (!correction_exceeds_signal) return null;
  const own = percent(1 - latency.corrected.sum_ns / Math.max(1, latency.raw.sum_ns));
  return h("p", { class: "faint" }, `${own} of the traced time is the tracer's own. Raw latencies compare numbers of calls, not times; trust the corrected ones. `, h("a", { href: "#method" }, "How it was corrected"));
}
