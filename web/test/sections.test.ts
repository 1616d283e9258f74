import { expect, test, vi } from "vitest";
import type { Page } from "../src/data/page";
import { missingLines } from "../src/layout/missing";

// Modules that draw look for the system's colours when they are loaded.
vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => {} }));
const { SECTIONS } = await import("../src/sections");
const { withoutAdvice } = await import("../src/sections/faults/fix");

test("every section has a name of its own", () => {
  const ids = SECTIONS.map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)]);
});

test("sections stand in the one order of all documents", () => {
  const at = (id: string) => SECTIONS.findIndex((section) => section.id === id);
  const order = ["answer", "runs", "findings", "fix", "settings", "proof", "timeline", "over-time", "memory-growth", "memory", "memory-course", "touched", "causes", "threads", "classes", "diff-classes", "paging", "page-sizes", "machine", "method", "missing"].map(at);
  expect(order).not.toContain(-1);
  expect(order).toEqual([...order].sort((a, b) => a - b));
});

test("an uncertain run is not said to need no change", () => {
  const lead = (...ids: string[]) => withoutAdvice({ diagnoses: ids.map((id) => ({ id })) } as unknown as Page)[0];
  expect(lead("open", "computing")).toBe("No advice yet.");
  expect(lead("computing")).toBe("Nothing to change.");
});

test("advice without a setting is no fix by a setting", () => {
  const fix = SECTIONS.find(({ id }) => id === "fix")!;
  const titled = (exports: [string, string][][]) => fix.titled!({ faults: { exports }, advice: exports.map(() => ({})) } as unknown as Page);
  expect(titled([[], []])).toBe("By hand");
  expect(titled([[["shell", "export A=1"]]])).toBe(undefined);
  expect(titled([])).toBe(undefined);
});

test("what several parts miss is told once", () => {
  const page = {
    generator: "",
    subject: "",
    command: [],
    verdict: "",
    losses: ["3,000 events lost"],
    notes: ["No call chains", "Off-CPU time is incomplete"],
    faults: { findings: { collection: { notes: ["No call chains"] }, timeline: { notes: [] } } },
  } as unknown as Page;
  expect(missingLines(page)).toEqual(["3,000 events lost", "No call chains", "Off-CPU time is incomplete"]);
});
