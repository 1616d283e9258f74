/** The parts of a page about two profiles, top to bottom. Changes are B less A. */
import type { ProfileDiffPage } from "../../data/profileDiff";
import type { DiffSide } from "../../data/profileFindings";
import { h, type Child } from "../../dom";
import { compact, count, nanos } from "../../format";
import { explorer } from "../explore";
import { cpus } from "../explore/words";
import type { Section } from "../section";
import { tile, unit, verdict } from "../head";
import { functions, stacks, unknown } from "./changes";
import { counters, settings } from "./hosts";
import { runs } from "./runs";

const answer: Section<ProfileDiffPage> = {
  id: "answer",
  title: "",
  nav: "",
  applies: () => true,
  render: ({ diff }) => {
    const found = Boolean(diff.run?.headline) || diff.functions.some((change) => change.significant);
    const side = (letter: string, side: DiffSide) => tile(`${letter}  ${side.name}`, amountOf(side), `${count(side.samples)} samples of ${diff.event}`, [side.span > 0 ? `over ${nanos(side.span)}` : "", side.cpus > 0 ? `${side.cpus} CPUs` : "", side.host].filter((text) => text !== "").join(", "));
    return h("div", {}, verdict(found ? "Differs" : "No difference found", found ? "bad" : "good", diff.run?.headline || diff.headline), diff.run?.headline ? h("p", { class: "faint" }, diff.headline) : null, h("div", { class: "tiles two" }, side("A", diff.a), side("B", diff.b)));
  },
};

/** How much of the event a side had, by time where it tells time. */
function amountOf({ unit: of, weight, span, samples }: DiffSide): Child[] {
  if (span <= 0 || of === null) return [count(samples), unit("samples")];
  const [figure, ...words] = of === "nanoseconds" ? cpus(weight / span).split(" ") : [compact((weight / span) * 1e9), "per second"];
  return [figure, unit(words.join(" "))];
}

const explore: Section<ProfileDiffPage> = {
  id: "over-time",
  title: "Both over time, and their differential flame graph",
  nav: "Flame graph",
  applies: () => true,
  intro: () => "Boxes are as wide as the mean of both sides, so that what vanished stays visible: red has grown in B, blue shrunk, pale is within what counts of samples scatter by; the tables above say what is sure. Drag over either map to compare ranges.",
  render: ({ profiles, diff }) => {
    const events = profiles!.sides[0]!.tracks.map((track) => track.event).filter((event) => profiles!.sides[1]!.tracks.some((track) => track.event === event));
    return explorer(profiles!, [diff.event, ...events.filter((event) => event !== diff.event)]);
  },
};

const method: Section<ProfileDiffPage> = {
  id: "method",
  title: "How it was compared",
  nav: "Method",
  applies: () => true,
  render: ({ diff }) =>
    h(
      "ul",
      {},
      h("li", {}, { share_of_busy: "Amounts are shares of each side's samples.", cpus_in_use: "Amounts are CPU time by elapsed time: CPUs in use.", per_second: "Amounts are events per second.", cpu_seconds_per_run: "Amounts are CPU time of a whole run, however long it took.", events_per_run: "Amounts are events of a whole run." }[diff.measure], " Idle CPUs are left out."),
      diff.block > 0 && h("li", {}, `${diff.blocks[0]} and ${diff.blocks[1]} blocks of ${nanos(diff.block)} were exchanged between the sides: what differs no more than after such exchanges is chance. Intervals are of 95 % each; the chance that any of those called sure is false is below 5 % for all together.`),
      ...diff.notes.map((note) => h("li", {}, note)),
    ),
};

export const SECTIONS: Section<ProfileDiffPage>[] = [answer, runs, functions, stacks, settings, counters, explore, unknown, method];
