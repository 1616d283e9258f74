/** The run, the machine, how it was recorded. */
import type { Allocator, Host, Report } from "../data/types";
import { h } from "../dom";
import { bytes, count, nanos } from "../format";
import type { Section } from "./section";

export const host: Section = {
  id: "host",
  title: "Run and machine",
  nav: "Machine",
  applies: () => true,
  render: (report) =>
    h(
      "div",
      { class: "columns" },
      facts("Run", run(report)),
      machine(report.findings.host),
      allocators(report),
      settings(report.findings.host),
    ),
};

type Fact = [string, string];

export function facts(title: string, rows: Fact[]): HTMLElement | null {
  const filled = rows.filter(([, value]) => value !== "");
  if (filled.length === 0) return null;
  return h("div", {}, title !== "" && h("h3", {}, title), h("dl", { class: "facts" }, ...filled.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
}

function run(report: Report): Fact[] {
  const { cost, collection, pid, samples, started_unix_ms } = report.findings;
  return [
    ["Command", report.command_line],
    ["Process", String(pid)],
    ["Started", started_unix_ms > 0 ? new Date(started_unix_ms).toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC") : ""],
    ["Elapsed", nanos(cost.wall)],
    ["CPU, program", nanos(cost.user)],
    ["CPU, kernel", nanos(cost.system)],
    ["Peak resident memory", cost.max_rss > 0 ? bytes(cost.max_rss) : ""],
    ["Waits / preemptions", `${count(cost.voluntary_switches)} / ${count(cost.involuntary_switches)}`],
    ["Recorded", collection.mode],
    ["Samples", count(samples)],
    ["Cost of recording", collection.own_cost > 0 ? `about ${nanos(collection.own_cost)}` : ""],
    ["Written by", report.generator],
  ];
}

/** What is known of a machine. */
export const machine = (host: Host): HTMLElement | null =>
  facts("Machine", [
    ["Name", host.hostname],
    ["Kernel", host.kernel],
    ["Architecture", host.architecture],
    ["Processor", host.cpu],
    ["CPUs", host.cpus > 0 ? count(host.cpus) : ""],
    ["Memory", host.memory_bytes > 0 ? bytes(host.memory_bytes) : ""],
    ["Page size", host.page_size > 0 ? bytes(host.page_size) : ""],
  ]);

const NAMES: Record<string, string> = {
  glibc: "GNU C library",
  musl: "musl",
  go: "Go runtime",
  jvm: "Java virtual machine",
  v8: "V8",
  cpython: "CPython",
  php: "PHP",
  ruby: "Ruby",
  r: "R",
  dotnet: ".NET",
  unknown: "unknown",
};

function allocators(report: Report): HTMLElement | null {
  const rows = report.findings.allocators.map((allocator): Fact => [NAMES[allocator.kind] ?? allocator.kind, words(allocator)]);
  return facts("Allocators in use", rows);
}

function words(allocator: Allocator): string {
  const parts = [allocator.version ? `version ${allocator.version}` : "", allocator.is_static ? "linked statically" : "", allocator.evidence];
  const settings = Object.entries(allocator.settings).map(([name, value]) => `${name}=${value}`);
  return [...parts, ...settings].filter((part) => part !== "").join("; ");
}

/** Its settings, folded up. */
export function settings({ settings: values }: Host): HTMLElement | null {
  const body = facts("", Object.entries(values));
  return body && h("details", {}, h("summary", {}, `Settings of the machine (${count(Object.keys(values).length)})`), body);
}
