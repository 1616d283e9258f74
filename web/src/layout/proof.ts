/** Proof: runs of each arm in rows, medians, and the before-and-after table. */
import type { Advice, Arm, Comparison, Proof, RunCost } from "../data/types";

/** The comparison that proves an advice; arms are named as `Advice::name` in crates/model does. */
export function provedBy(proof: Proof | null, { rule }: Advice): Comparison | null {
  if (!proof) return null;
  const [family, ...rest] = rule.includes(".") ? rule.split(".") : ["", rule];
  const own = rest.join(".").replaceAll("-", " ");
  const name = family === "preload" || family === "install" ? `${family} ${own}` : own;
  const found = [proof.confirmation, ...proof.comparisons].find((one) => one?.arm === name && one.verdict === "faster");
  return found ?? null;
}

/** The gain that stands first, and what it is a gain in: as `Comparison::leading` in crates/model decides. */
export function leading({ wall_speedup: wall, cpu_speedup: cpu }: Comparison): { gain: Comparison["cpu_speedup"]; clock: string } {
  const isElapsed = (wall.low > 1 && cpu.low <= 1) || wall.low > cpu.high;
  return isElapsed ? { gain: wall, clock: "elapsed time" } : { gain: cpu, clock: "CPU time" };
}

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export interface ArmRow {
  name: string;
  walls: number[];
  median: number;
  isWinner: boolean;
}

/** One row for each arm that ran, in the order tried. */
export function armRows(proof: Proof): ArmRow[] {
  return proof.arms
    .filter((arm) => arm.runs.length > 0)
    .map((arm) => {
      const walls = arm.runs.map((run) => run.wall);
      return { name: arm.name, walls, median: median(walls), isWinner: arm.name === proof.winner };
    });
}

export interface Before {
  name: string;
  unit: "time" | "count" | "bytes";
  before: number;
  after: number;
}

const MEASURES: [string, Before["unit"], (run: RunCost) => number][] = [
  ["Elapsed time", "time", (run) => run.wall],
  ["CPU time in the program", "time", (run) => run.user],
  ["CPU time in the kernel", "time", (run) => run.system],
  ["Page faults", "count", (run) => run.minor_faults + run.major_faults],
  ["Peak memory", "bytes", (run) => run.max_rss],
];

/** Medians of the baseline and of the winner, or of the first arm if none won. */
export function beforeAfter(proof: Proof): { arm: string; rows: Before[] } | null {
  const [baseline, ...others] = proof.arms;
  const arm = others.find((other) => other.name === proof.winner) ?? others[0];
  if (!baseline || !arm || baseline.runs.length === 0 || arm.runs.length === 0) return null;
  const of = (from: Arm, measure: (run: RunCost) => number) => median(from.runs.map(measure));
  const rows = MEASURES.map(([name, unit, measure]) => ({
    name,
    unit,
    before: of(baseline, measure),
    after: of(arm, measure),
  }));
  return { arm: arm.name, rows };
}
