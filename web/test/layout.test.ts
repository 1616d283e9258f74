import { describe, expect, it } from "vitest";
import type { FaultMap, Proof, Run, RunCost } from "../src/data/types";
import { byteTicks, linear, linearTicks, log, logTicks } from "../src/layout/axis";
import { avoidable, cpuParts, elapsedParts } from "../src/layout/cost";
import { BAND_GAP, labels, layoutMap, strength } from "../src/layout/faultmap";
import { armRows, beforeAfter, median } from "../src/layout/proof";
import { endOf, nearest, rates, thin } from "../src/layout/series";

describe("axis", () => {
  it("steps by round values", () => {
    expect(linearTicks(0, 2.36e9, 5)).toEqual([0, 0.5e9, 1e9, 1.5e9, 2e9]);
    expect(linearTicks(0, 100, 4)).toEqual([0, 50, 100]);
    expect(byteTicks(0, 11 * 2 ** 20, 3)).toEqual([0, 4, 8].map((mib) => mib * 2 ** 20));
    expect(logTicks(250, 120_000, 10, 9)).toEqual([1_000, 10_000, 100_000]);
    expect(logTicks(1_200, 90_000, 10, 9)).toEqual([2_000, 5_000, 10_000, 20_000, 50_000]);
    expect(logTicks(1_200, 90_000, 10, 4)).toEqual([10_000]);
    expect(linearTicks(3, 3, 4)).toEqual([3]);
  });

  it("thins logarithmic ticks instead of crowding them", () => {
    expect(logTicks(1, 2 ** 30, 2, 5).length).toBeLessThanOrEqual(6);
  });

  it("maps domains to pixels", () => {
    expect(linear([0, 10], [100, 200])(5)).toBe(150);
    expect(log([1, 100], [0, 10])(10)).toBeCloseTo(5);
    expect(linear([3, 3], [0, 10])(3)).toBe(0);
  });
});

describe("series", () => {
  it("turns counters into rates and survives a counter that falls", () => {
    expect(rates([0, 1e9, 1.5e9, 1.5e9, 2.5e9], [0, 100, 200, 250, 40])).toEqual([
      { x: 1e9, y: 100 },
      { x: 1.5e9, y: 200 },
      { x: 2.5e9, y: 0 },
    ]);
  });

  it("ends all plots of a run where its observation ended", () => {
    const timeline = { points: [{ time: 0 }, { time: 2.1e9 }], pressure: [{ time: 2.2e9 }] };
    expect(endOf({ cost: { wall: 2.31e9 }, timeline })).toBe(2.31e9);
    expect(endOf({ cost: { wall: 2e9 }, timeline })).toBe(2.2e9);
    expect(endOf({ cost: { wall: 2e9 }, timeline: { points: [], pressure: [] } })).toBe(2e9);
  });

  it("keeps peaks when thinning", () => {
    const points = Array.from({ length: 10_000 }, (_, x) => ({ x, y: x === 7_777 ? 99 : 0 }));
    const kept = thin(points, 200);
    expect(kept.length).toBeLessThanOrEqual(200);
    expect(Math.max(...kept.map((point) => point.y))).toBe(99);
    expect(kept.map((point) => point.x)).toEqual(kept.map((point) => point.x).sort((a, b) => a - b));
  });

  it("finds the nearest point", () => {
    const points = [0, 10, 20].map((x) => ({ x, y: 0 }));
    expect([-5, 4, 6, 14, 99].map((x) => nearest(points, x))).toEqual([0, 0, 1, 1, 2]);
    expect(nearest([], 1)).toBe(-1);
  });
});

describe("fault map", () => {
  const row = (start: string, region: "heap" | "stack" | "anonymous") => ({ start, length: 4096, region });
  const map: FaultMap = {
    time_step: 1,
    columns: 4,
    rows: [row("0x1000", "heap"), row("0x2000", "heap"), row("0x7fff00000000", "heap"), row("0x7fff00001000", "stack")],
    cells: [{ row: 1, column: 2, faults: 7, churn: 1 }],
  };

  it("breaks bands where addresses or kinds of memory do, low addresses below", () => {
    const { bands, tops, most, height } = layoutMap(map, 40);
    expect(bands.map((band) => [band.region, band.from, band.to])).toEqual([["heap", 0, 2], ["heap", 2, 3], ["stack", 3, 4]]);
    expect(tops[0]).toBeGreaterThan(tops[1]!);
    expect(tops[1]).toBeGreaterThan(tops[3]!);
    expect(most).toBe(7);
    expect(height).toBe(bands.reduce((sum, band) => sum + band.height + BAND_GAP, -BAND_GAP));
  });

  it("names the highest band where two are too near for two names", () => {
    const band = (region: string, top: number, height: number) => ({ region, start: "0x0", from: 0, to: 1, top, height });
    expect(labels([band("heap", 20, 60), band("file", 17, 2)])).toEqual([{ region: "heap", middle: 30 }]);
    expect(labels([band("heap", 40, 60), band("file", 17, 2)]).map(({ region }) => region)).toEqual(["heap", "file"]);
  });

  it("packs many bands", () => {
    const rows = Array.from({ length: 60 }, (_, i) => row(`0x${((i + 1) * 2 ** 30).toString(16)}`, "anonymous"));
    const { bands, height } = layoutMap({ ...map, rows, cells: [] }, 340);
    expect(bands).toHaveLength(60);
    expect(height).toBeLessThan(500);
  });

  it("keeps a single fault visible beside many", () => {
    expect(strength(1, 1e6)).toBeGreaterThan(0.25);
    expect(strength(1e6, 1e6)).toBe(1);
    expect(strength(0, 1e6)).toBe(0);
    expect(strength(0, 0)).toBe(0);
  });
});

const run = (wall: number): RunCost => ({ wall, user: wall / 2, system: 0, minor_faults: 10, major_faults: 1, max_rss: 100, voluntary_switches: 0, involuntary_switches: 0 });

describe("proof", () => {
  const proof: Proof = {
    arms: [
      { name: "as it is", settings: [], runs: [run(10), run(30), run(20)] },
      { name: "slow", settings: [], runs: [run(40)] },
      { name: "fast", settings: [], runs: [run(4), run(6)] },
      { name: "never ran", settings: [], runs: [] },
    ],
    comparisons: [],
    winner: "fast",
    confirmation: null,
    summary: "",
    notes: [],
  };

  it("takes medians", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(median([])).toBeNaN();
  });

  it("shows each arm that ran", () => {
    expect(armRows(proof).map((row) => [row.name, row.median, row.isWinner])).toEqual([["as it is", 20, false], ["slow", 40, false], ["fast", 5, true]]);
  });

  it("compares the winner with the baseline", () => {
    const pair = beforeAfter(proof);
    expect(pair?.arm).toBe("fast");
    expect(pair?.rows[0]).toEqual({ name: "Elapsed time", unit: "time", before: 20, after: 5 });
    expect(beforeAfter({ ...proof, arms: proof.arms.slice(0, 1) })).toBeNull();
  });
});

describe("cost", () => {
  const findings = (user: number, system: number, faults: number | null): Run =>
    ({
      cost: { user, system },
      account: {},
      time: { total_ns: faults === null ? null : { value: faults, low: faults, high: faults }, share_of_cpu: null },
      by_cause: [
        { key: "refault_after_brk", faults: { value: 75, low: 75, high: 75 }, time: null },
        { key: "first_touch", faults: { value: 25, low: 25, high: 25 }, time: null },
      ],
    }) as unknown as Run;

  it("splits the CPU time without remainder", () => {
    for (const [user, system, faults] of [[5, 15, 13], [5, 15, 18], [5, 15, 99], [20, 0, 0]] as const) {
      const parts = cpuParts(findings(user, system, faults));
      expect(parts.reduce((sum, part) => sum + part.share, 0)).toBeCloseTo(1);
      expect(Math.min(...parts.map((part) => part.nanos))).toBeGreaterThanOrEqual(0);
    }
  });

  it("claims no fault time that was not found", () => {
    expect(cpuParts(findings(5, 15, null)).map((part) => part.id)).toEqual(["user", "kernel"]);
    expect(cpuParts(findings(0, 0, 1))).toEqual([]);
  });

  it("shows the largest parts of the elapsed time, and all of it", () => {
    const part = (id: string, value: number) => ({ id, label: id, time: { value, low: 0, high: value }, places: [], who: [] });
    const none = { value: 0, low: 0, high: 0 };
    const empty = { entries: [], kernel: none, samples: 0, unexplained: none, work: [] };
    const elapsed = ["sleep", "cpu", "network", "ready", "disk", "locks"].map((id, at) => part(id, 10 - at));
    const run = findings(5, 15, null);
    const parts = elapsedParts({ ...run, cost: { ...run.cost, wall: 45 }, account: { ...empty, elapsed } });
    expect(parts.map(({ id, name }) => [id, name])).toEqual([["violet", "sleep"], ["user", "cpu"], ["rose", "network"], ["kernel", "ready"], ["rest", "the rest"]]);
    expect(parts.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
    expect(elapsedParts({ ...run, account: empty })).toEqual([]);
    const cpu = [part("fault", 12), part("own", 5), part("call.map", 3)];
    expect(cpuParts({ ...run, account: { ...empty, cpu } }).map(({ id, share }) => [id, share])).toEqual([["faults", 0.6], ["user", 0.25], ["violet", 0.15]]);
  });

  it("counts churn as avoidable", () => {
    expect(avoidable(findings(1, 1, 1), ["refault_after_brk"])).toBe(0.75);
    expect(avoidable({ ...findings(1, 1, 1), by_cause: [] }, [])).toBeNull();
  });
});
