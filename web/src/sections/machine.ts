/** The run, the machine, and their settings. */
import { ended } from "../data/ending";
import type { Page } from "../data/page";
import type { ProfileData } from "../data/profile";
import type { Balance, HostSnapshot, PagingTimeline } from "../data/schema";
import type { Allocator, Report } from "../data/types";
import { h } from "../dom";
import { bytes, count, nanos } from "../format";
import type { Section } from "./section";

export const machine: Section = {
  id: "machine",
  title: "Run and machine",
  nav: "Machine",
  applies: (page) => parts(page).length > 0,
  render: (page) => h("div", { class: "columns" }, ...parts(page)),
};

function parts({ command, pids, host, faults, memory, profile, paging, balance, simulation }: Page): HTMLElement[] {
  const found = [
    faults && facts("Run", run(faults, pids)),
    memory && facts("Run", [["Command", command.join(" ")], ["Process", pids.join(", ")]]),
    profile && facts("Samples", ofProfile(profile, faults === undefined ? command : null)),
    facts("Machine", ofMachine(host)),
    faults && allocators(faults),
    paging && facts("Run", ofPaging(command, paging)),
    balance && facts("Run", ofBalance(command, balance)),
    simulation && facts("Simulated", [["Machine", simulation.machine], ["Workloads", simulation.workloads.join(", ")]]),
    settings(host),
  ];
  return found.filter((part) => part !== undefined && part !== null);
}

type Fact = [string, string];

export function facts(title: string, rows: Fact[]): HTMLElement | null {
  const filled = rows.filter(([, value]) => value !== "");
  if (filled.length === 0) return null;
  return h("div", {}, title !== "" && h("h3", {}, title), h("dl", { class: "facts" }, ...filled.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
}

function run(report: Report, pids: number[]): Fact[] {
  const { cost, started_unix_ms } = report.findings;
  return [
    ["Command", report.command_line],
    [pids.length > 1 ? "Processes" : "Process", pids.join(", ")],
    ["Started", started_unix_ms > 0 ? new Date(started_unix_ms).toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC") : ""],
    ["Elapsed", nanos(cost.wall)],
    ["CPU, program", nanos(cost.user)],
    ["CPU, kernel", nanos(cost.system)],
    ["Peak resident memory", cost.max_rss > 0 ? bytes(cost.max_rss) : ""],
    ["Waits / preemptions", `${count(cost.voluntary_switches)} / ${count(cost.involuntary_switches)}`],
  ];
}

/** For samples alone, with the command; otherwise the command is shown elsewhere. */
function ofProfile({ findings, profiles }: ProfileData, command: string[] | null): Fact[] {
  const [side] = profiles!.sides;
  return [
    ["Command", command?.join(" ") ?? ""],
    ["Elapsed", command !== null && findings.span > 0 ? nanos(findings.span) : ""],
    ["Threads", count(side!.threads.count)],
    ["Functions", count(profiles!.frames.length)],
    ["Different stacks", count(side!.tracks.reduce((sum, track) => sum + track.leaves.length, 0))],
  ];
}

function ofPaging(command: string[], { ending, memory_bytes, memory_is_each, policy, store, points }: PagingTimeline): Fact[] {
  return [
    ["Command", command.join(" ")],
    ["Ending", `the program ${ended(ending)}`],
    ["Elapsed", points.length > 0 ? nanos(points.at(-1)!.time) : ""],
    ["Budget", `${bytes(memory_bytes)} ${memory_is_each ? "for each process" : "for all processes together"}`],
    ["Policy", policy],
    ["Store", store],
  ];
}

function ofBalance(command: string[], { processes, controller, applied, elapsed, huge_page }: Balance): Fact[] {
  return [
    ["Command", command.join(" ")],
    ["Processes", processes.map(({ comm, pid }) => `${comm} (${pid})`).join(", ")],
    ["Elapsed", nanos(elapsed)],
    ["Controller", applied ? controller : `${controller}; dry run`],
    ["Huge page", bytes(huge_page)],
  ];
}

/** What is known about a machine. */
const ofMachine = (of: HostSnapshot): Fact[] => [
  ["Name", of.hostname],
  ["Kernel", of.kernel],
  ["Architecture", of.architecture],
  ["Processor", of.cpu],
  ["CPUs", of.cpus > 0 ? count(of.cpus) : ""],
  ["Memory", of.memory_bytes > 0 ? bytes(of.memory_bytes) : ""],
  ["Page size", of.page_size > 0 ? bytes(of.page_size) : ""],
];

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

/** Its settings, folded. */
function settings(host: HostSnapshot): HTMLElement | null {
  const values = Object.entries(host.settings ?? {});
  const body = facts("", values);
  return body && h("details", {}, h("summary", {}, `Settings of the machine (${count(values.length)})`), body);
}
