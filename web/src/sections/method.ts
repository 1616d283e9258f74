/** How the figures were measured, compared or estimated, so that a reader can judge them. */
import type { MemoryPart, Page } from "../data/page";
import type { Report } from "../data/types";
import { h, type Child } from "../dom";
import { count, nanos } from "../format";
import { judged } from "../layout/memory";
import { tested } from "./fault_diff/method";
import { quality } from "./fault_paths/quality";
import { facts } from "./machine";
import { compared } from "./profile_diff/method";
import type { Section } from "./section";

export const method: Section = {
  id: "method",
  title: "Method and quality",
  nav: "Method",
  folded: true,
  applies: () => true,
  render: (page) => h("div", {}, ...parts(page), facts("", [["Written by", page.generator]])),
};

function parts({ faults, memory, profile, paths, paths_diff, profile_diff, run_diff, paging, balance, simulation, losses, notes }: Page): Child[] {
  return [
    faults && ofFaults(faults),
    memory && ofMemory(memory),
    profile && facts("Samples", profile.findings.events.map(({ name, samples, frequency }) => [name, `${count(samples)} samples${frequency === null ? "" : `, ${count(frequency)} per second requested`}`])),
    paths && quality(paths, losses),
    paths_diff && tested(paths_diff),
    profile_diff && compared(profile_diff, notes),
    run_diff && h("p", {}, "Whole runs: a figure is marked as different if it differs more than between two runs of one program. One run of each is no proof; pagewise doctor --prove alternates runs and compares them."),
    paging && h("p", {}, `One reading every ${nanos(paging.interval)}. Pages away from memory are estimated from ${count(paging.refault_distances.sampled_pages)} that were followed.`),
    balance && h("p", {}, `The cost of a unit of work is measured by ${balance.signal}.${balance.walk_events === null ? "" : ` Page walks are counted by ${balance.walk_events}.`}`),
    simulation && h("p", {}, `Simulated on ${simulation.machine}.`),
  ].filter((part) => part !== undefined && part !== null);
}

function ofMemory({ found }: MemoryPart): HTMLElement | null {
  const moment = judged(found);
  if (moment === undefined) return null;
  const stopped = Math.max(0, ...moment.processes.map((one) => one.stopped_ns ?? 0));
  return facts("Look at the memory", [
    ["Took", nanos(moment.look_ns)],
    ["Stopped", stopped > 0 ? `at most ${nanos(stopped)}` : "nothing"],
    ["Looks", found.course?.length ? count(found.course.length) : ""],
  ]);
}

const ofFaults = ({ findings: { collection, samples } }: Report): HTMLElement | null =>
  facts("Faults", [
    ["Recorded", collection.mode],
    ["Samples", count(samples)],
    ["Cost of recording", collection.own_cost > 0 ? `about ${nanos(collection.own_cost)}` : ""],
  ]);
