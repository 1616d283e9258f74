/** How two whole runs differ, and what each was. */
import type { RunDiff, RunSide } from "../../data/schema";
import { h } from "../../dom";
import { bytes, count, nanos } from "../../format";
import type { Answer } from "../answer";
import { DIFFERS, tile, unit } from "../head";

export const answer: Answer<RunDiff> = {
  title: "Both runs as wholes",
  nav: "Runs",
  badge: ({ headline }) => DIFFERS[headline === "" ? "no" : "yes"],
  headline: ({ a, b, headline }) => headline || `${a.name} and ${b.name} differ by no more than two runs of one program do.`,
  account: ({ a, b }) => [h("div", { class: "tiles two" }, side("A", a), side("B", b))],
};

function side(letter: string, { name, command, host, cost }: RunSide): HTMLElement {
  const faults = cost.minor_faults + cost.major_faults;
  return tile(`${letter}  ${name}`, [nanos(cost.wall), unit("elapsed")], [`${count(faults)} page faults`, cost.max_rss > 0 ? `${bytes(cost.max_rss)} at most` : "", host].filter((text) => text !== "").join(", "), command.length > 0 && h("code", {}, command.join(" ")));
}
