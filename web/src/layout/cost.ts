/** Where the CPU time of a run went. */
import type { Run, TimePart } from "../data/types";
import { isNumber, percent } from "../format";

export interface Part {
  /** Its colour. */
  id: "user" | "faults" | "kernel" | "violet" | "rose" | "teal" | "amber" | "rest";
  name: string;
  nanos: number;
  share: number;
}

/** Nanoseconds of CPU time that faults cost, by the best available figure. */
export function faultNanos(findings: Run): number | null {
  const { total_ns, share_of_cpu } = findings.time;
  const cpu = findings.cost.user + findings.cost.system;
  if (total_ns && isNumber(total_ns.value)) return Math.min(total_ns.value, cpu);
  if (share_of_cpu && isNumber(share_of_cpu.value)) return Math.min(share_of_cpu.value * cpu, cpu);
  return null;
}

/** What the CPU time was spent on: as accounted, otherwise in three parts. */
export function cpuParts(findings: Run): Part[] {
  const cpu = findings.cost.user + findings.cost.system;
  const accounted = findings.account.cpu ?? [];
  if (cpu <= 0) return [];
  if (accounted.length === 0) return threeParts(findings, cpu);
  const within = (findings.account.faults ?? []).map(({ label, time }) => `${percent(time.value / cpu)} ${label}`).join(", ");
  const named = accounted.map((part) => (part.id === "fault" && within !== "" ? { ...part, label: `${part.label} (${within})` } : part));
  return parts(named, cpu, { own: "user", fault: "faults" });
}

/**
 * Faults are kernel time; if their estimate exceeds the accounted kernel time, the rest is taken
 * from the program's own part.
 */
function threeParts(findings: Run, cpu: number): Part[] {
  const { user, system } = findings.cost;
  const faults = faultNanos(findings);
  const over = Math.max(0, (faults ?? 0) - system);
  const parts: Part[] = [
    { id: "user", name: "the program's own code", nanos: user - over, share: 0 },
    { id: "faults", name: "page faults", nanos: faults ?? 0, share: 0 },
    { id: "kernel", name: faults === null ? "the kernel" : "other kernel work", nanos: Math.max(0, system - (faults ?? 0)), share: 0 },
  ];
  return parts
    .filter((part) => part.id !== "faults" || faults !== null)
    .map((part) => ({ ...part, share: part.nanos / cpu }));
}

/** What the program did or waited for; empty if that was not observed. */
export function elapsedParts(findings: Run): Part[] {
  const { wall } = findings.cost;
  return wall > 0 ? parts(findings.account.elapsed ?? [], wall, { cpu: "user", ready: "kernel" }) : [];
}

/** Number of parts that are shown individually, and colours for those without a fixed one. */
const SHOWN = 4;
const COLOURS: Part["id"][] = ["violet", "rose", "kernel", "teal", "amber"];

/** The largest parts and the rest. */
function parts(all: TimePart[], whole: number, known: Record<string, Part["id"]>): Part[] {
  const colours = COLOURS.filter((colour) => !Object.values(known).includes(colour));
  const named = all.slice(0, SHOWN).map(({ id, label, places, who, time }) => ({
    id: known[id] ?? colours.shift() ?? "rest",
    name: who !== undefined && places.length > 0 ? `${label} (${places[0]})` : label,
    nanos: time.value,
    share: time.value / whole,
  }));
  const rest = all.slice(SHOWN).reduce((sum, { time }) => sum + time.value, 0);
  if (rest > 0) named.push({ id: "rest", name: "the rest", nanos: rest, share: rest / whole });
  return named;
}

/** Share of all faults that is churn: given back and touched again. Null if unknown. */
export function avoidable(findings: Run, churnCauses: string[]): number | null {
  const total = findings.by_cause.reduce((sum, share) => sum + share.faults.value, 0);
  if (!(total > 0)) return null;
  const churn = findings.by_cause
    .filter((share) => churnCauses.includes(share.key))
    .reduce((sum, share) => sum + share.faults.value, 0);
  return churn / total;
}
