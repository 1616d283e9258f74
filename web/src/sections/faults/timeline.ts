/** Faults and sizes over time: Ezolt's graphs. */
import type { PressurePoint, Report } from "../../data/types";
import { h } from "../../dom";
import { choice } from "../../draw/choice";
import { legend, timePane, type Pane } from "../../draw/series";
import { bytes, compact, percent } from "../../format";
import { endOf, rates } from "../../layout/series";
import type { Section } from "../section";

export const timeline: Section<Report> = {
  id: "timeline",
  title: "Faults and memory over time",
  nav: "Over time",
  applies: (report) => report.findings.timeline.points.length > 2,
  intro: () =>
    "A program that has reached its size takes few faults: the total flattens out. A total that rises steadily to the end means that memory is returned and requested all the time.",
  render: (report) => {
    const faults = h("div", {});
    const draw = (mode: string) => show(faults, faultPane(report, mode));
    draw("rate");
    const modes: [string, string][] = [
      ["rate", "per second"],
      ["total", "total"],
    ];
    return h(
      "div",
      {},
      h("div", { class: "pane-head" }, h("h3", {}, "Page faults"), choice("Faults shown", modes, draw)),
      faults,
      ...[...memoryPanes(report), ...pressurePanes(report)].flatMap((pane) => [h("h3", {}, pane.title), show(h("div", {}), pane)]),
    );
  },
};

/** The SVG measures its parent, so it has a parent of its own. */
function show(place: HTMLElement, pane: Pane): HTMLElement {
  const key = legend(pane);
  place.replaceChildren(...(key ? [key] : []), h("div", {}, timePane(pane)));
  return place;
}

function faultPane(report: Report, mode: string): Pane {
  const { points } = report.findings.timeline;
  const times = points.map((point) => point.time);
  const series = (counter: number[]) =>
    mode === "rate" ? rates(times, counter) : counter.map((y, at) => ({ x: times[at]!, y }));
  const minor = series(points.map((point) => point.minor_faults));
  const major = series(points.map((point) => point.major_faults));
  const lines = [{ name: "minor faults", points: minor, ink: "churn" }];
  if (major.some((point) => point.y > 0)) lines.push({ name: "major faults (disk)", points: major, ink: "needed" });
  const title = mode === "rate" ? "Page faults per second" : "Page faults in total";
  return { title, lines, unit: "number", label: compact, end: endOf(report.findings) };
}

function memoryPanes(report: Report): Pane[] {
  const { points } = report.findings.timeline;
  const end = endOf(report.findings);
  const line = (name: string, ink: string, pick: (point: (typeof points)[number]) => number) => ({
    name,
    ink,
    points: points.map((point) => ({ x: point.time, y: pick(point) })),
  });
  const pane = (title: string, ...lines: Pane["lines"]): Pane => ({ title, lines, unit: "bytes", label: bytes, end });
  const resident = [line("resident", "needed", (point) => point.rss)];
  if (points.some((point) => point.swap > 0)) resident.push(line("swapped out", "churn", (point) => point.swap));
  return [
    pane("Resident memory (RAM in use)", ...resident),
    pane("Virtual size (addresses reserved)", line("virtual size", "kernel", (point) => point.vsize)),
  ];
}

type Counter = (point: PressurePoint) => number;

/** Stalls below this are not noticeable: a hundredth of the time. */
const LEAST_STALL = 1e7;

/** What the machine did because memory was short; panes in which nothing happened are left out. */
function pressurePanes(report: Report): Pane[] {
  const { pressure } = report.findings.timeline;
  const times = pressure.map((point) => point.time);
  const end = endOf(report.findings);
  const line = (name: string, ink: string, counter: Counter) => ({ name, ink, points: rates(times, pressure.map(counter)) });
  const pane = (title: string, label: Pane["label"], ...lines: Pane["lines"]): Pane => ({ title, lines, unit: "number", label, end });
  const share = (nanosPerSecond: number) => percent(nanosPerSecond / 1e9);
  const panes = [
    pane(
      "Time stalled because memory was short (whole machine)",
      share,
      line("some task waits", "churn", (point) => point.stall_some ?? 0),
      line("all tasks wait", "needed", (point) => point.stall_full ?? 0),
    ),
    pane(
      "Pages moved to and from swap, per second",
      compact,
      line("out", "churn", (point) => point.swap_out),
      line("in", "needed", (point) => point.swap_in),
    ),
    pane(
      "Pages scanned to reclaim memory, per second",
      compact,
      line("by the programs themselves", "churn", (point) => point.direct_scanned),
      line("in the background", "kernel", (point) => point.kswapd_scanned),
    ),
    pane(
      "Huge pages at faults, per second",
      compact,
      line("given", "good", (point) => point.thp_fault_alloc),
      line("wanted but not to be had", "churn", (point) => point.thp_fault_fallback),
    ),
  ];
  return panes
    .map((pane) => ({ ...pane, lines: pane.lines.filter((line) => line.points.some((point) => point.y > (pane.label === share ? LEAST_STALL : 0))) }))
    .filter((pane) => pane.lines.length > 0);
}
