/** How two profiles differ, and a description of each side. */
import type { ProfileDiffPage } from "../../data/profileDiff";
import type { DiffSide } from "../../data/profileFindings";
import { h, type Child } from "../../dom";
import { compact, count, nanos } from "../../format";
import type { Answer } from "../answer";
import { cpus } from "../explore/words";
import { DIFFERS, tile, unit } from "../head";

export const answer: Answer<ProfileDiffPage> = {
  title: "Samples of both",
  nav: "Samples of both",
  badge: ({ diff }) => DIFFERS[diff.functions.some((change) => change.significant) ? "yes" : "no"],
  headline: (_, { verdict }) => verdict,
  account: ({ diff }) => [h("div", { class: "tiles two" }, side("A", diff.a, diff.event), side("B", diff.b, diff.event))],
};

const side = (letter: string, side: DiffSide, event: string): HTMLElement => tile(`${letter}  ${side.name}`, amountOf(side), `${count(side.samples)} samples of ${event}`, [side.span > 0 ? `over ${nanos(side.span)}` : "", side.cpus > 0 ? `${side.cpus} CPUs` : "", side.host].filter((text) => text !== "").join(", "));

/** How much of the event a side had, over time if it has times. */
function amountOf({ unit: of, weight, span, samples }: DiffSide): Child[] {
  if (span <= 0 || of === null) return [count(samples), unit("samples")];
  const [figure, ...words] = of === "nanoseconds" ? cpus(weight / span).split(" ") : [compact((weight / span) * 1e9), "per second"];
  return [figure, unit(words.join(" "))];
}
