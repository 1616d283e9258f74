/** Rate, mix and latency over the trace, with the moments of change. */
import type { ChangePoint, FaultPathsPage, TimeBlock } from "../../data/faultPaths";
import { h } from "../../dom";
import { timePane, type Pane } from "../../draw/series";
import { axisNanos, compact, count, counted, nanos, percent } from "../../format";
import type { Section } from "../section";
import { kindsOf } from "./kinds";

export const timeline: Section<FaultPathsPage> = {
  id: "paths-timeline",
  title: "Faults of the trace over time",
  nav: "Over time",
  applies: ({ findings }) => findings.timeline.blocks.length > 1,
  intro: () => "Faults in blocks of about equal size. Dashed lines mark moments from which on faults were different beyond chance.",
  render: (report) => {
    const { blocks, changes } = report.findings.timeline;
    const timed = blocks.filter((block) => block.start_ns !== null && block.end_ns !== null);
    const hasTimes = timed.length === blocks.length;
    const panes = hasTimes ? [ratePane(timed, changes), latencyPane(timed, changes, true), mixPane(report, timed, changes, true)] : [latencyPane(blocks, changes, false), mixPane(report, blocks, changes, false)];
    return h(
      "div",
      {},
      !hasTimes && h("p", { class: "faint" }, "The trace has no times: the axis counts faults."),
      ...panes.flatMap((pane) => [h("h3", {}, pane.title), legendOf(pane), h("div", {}, timePane(pane))]),
      h("h3", {}, "Changes"),
      list(report, changes),
    );
  },
};

function legendOf(pane: Pane): HTMLElement | null {
  if (pane.lines.length < 2) return null;
  return h("ul", { class: "legend" }, ...pane.lines.map((line) => h("li", {}, h("span", { class: `swatch kbar ${line.ink}` }), line.name)));
}

/** The middle of each block, on the axis of times or of faults. */
function places(blocks: TimeBlock[], hasTimes: boolean): { xs: number[]; end: number } {
  let seen = 0;
  const xs = blocks.map((block) => {
    const middle = seen + block.faults / 2;
    seen += block.faults;
    return hasTimes ? ((block.start_ns ?? 0) + (block.end_ns ?? 0)) / 2 : middle;
  });
  return { xs, end: hasTimes ? (blocks.at(-1)?.end_ns ?? 0) : seen };
}

const marks = (changes: ChangePoint[], kinds: ChangePoint["what"][], hasTimes: boolean): number[] =>
  changes.filter((change) => kinds.includes(change.what)).flatMap((change) => (hasTimes ? (change.at_ns === null ? [] : [change.at_ns]) : [change.faults_before]));

function ratePane(blocks: TimeBlock[], changes: ChangePoint[]): Pane {
  const points = blocks.flatMap((block) => {
    const [from, to] = [block.start_ns ?? 0, block.end_ns ?? 0];
    const rate = block.faults / Math.max((to - from) / 1e9, 1e-6);
    return [{ x: from, y: rate }, { x: to, y: rate }];
  });
  return { title: "Faults per second", lines: [{ name: "faults per second", ink: "k0", points }], unit: "number", label: compact, end: blocks.at(-1)?.end_ns ?? 0, marks: marks(changes, ["rate"], true) };
}

function latencyPane(blocks: TimeBlock[], changes: ChangePoint[], hasTimes: boolean): Pane {
  const { xs, end } = places(blocks, hasTimes);
  const error = Math.max(0, ...blocks.map((block) => block.error_ns));
  const line = (name: string, ink: string, of: (block: TimeBlock) => number) => ({ name, ink, points: blocks.map((block, at) => ({ x: xs[at]!, y: of(block) })) });
  return { title: `Whole time of a fault, corrected${error > 0 ? ` (mean ± ${nanos(error)})` : ""}`, lines: [line("99th percentile", "k1", (b) => b.p99_ns), line("90th", "k4", (b) => b.p90_ns), line("median", "k0", (b) => b.p50_ns)], unit: "number", label: axisNanos, end, log: true, marks: marks(changes, ["median", "tail"], hasTimes), ...(hasTimes ? {} : { time: compact, across: "faults since the start" }) };
}

const MOST_KINDS = 6;

function mixPane(report: FaultPathsPage, blocks: TimeBlock[], changes: ChangePoint[], hasTimes: boolean): Pane {
  const kinds = kindsOf(report);
  const { xs, end } = places(blocks, hasTimes);
  const shown = report.findings.classes.slice(0, MOST_KINDS);
  const lines = shown.map((found) => ({
    name: kinds.name(found.class),
    ink: kinds.ink(found.class),
    points: blocks.map((block, at) => ({ x: xs[at]!, y: (block.classes.find(([kind]) => kind === found.class)?.[1] ?? 0) / Math.max(1, block.faults) })),
  }));
  return { title: "Share of each kind", lines, unit: "number", label: percent, end, marks: marks(changes, ["mix"], hasTimes), ...(hasTimes ? {} : { time: compact, across: "faults since the start" }) };
}

const WHAT: Record<ChangePoint["what"], string> = { rate: "faults per second", mix: "share", median: "median", tail: "90th percentile" };

function list(report: FaultPathsPage, changes: ChangePoint[]): HTMLElement {
  if (changes.length === 0) return h("p", {}, "None beyond chance: faults at the end are like those at the start.");
  const figure = (change: ChangePoint, value: number) => (change.what === "mix" ? percent(value) : change.what === "rate" ? compact(value) : nanos(value));
  const words = (change: ChangePoint) => {
    const what = change.what === "mix" && change.class !== null ? `share of ${kindsOf(report).name(change.class)}` : WHAT[change.what];
    const when = change.at_ns === null ? `after ${counted(change.faults_before, "fault")}` : `at ${nanos(change.at_ns)} (after ${counted(change.faults_before, "fault")})`;
    return `${when}: ${what} from ${figure(change, change.before)} to ${figure(change, change.after)}`;
  };
  const lines = changes.map((change) => h("li", {}, words(change)));
  if (lines.length <= 12) return h("ul", { class: "evidence" }, ...lines);
  return h("div", {}, h("ul", { class: "evidence" }, ...lines.slice(0, 12)), h("details", {}, h("summary", {}, `${count(lines.length - 12)} more`), h("ul", { class: "evidence" }, ...lines.slice(12))));
}
