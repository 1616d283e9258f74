/** How two whole runs differ, and what each was. */
import type { RunDiff, RunSide } from "../../data/schema";
import { h } from "../../dom";
import { bytes, count, nanos } from "../../format";
import type { Answer } from "../answer";
import { DIFFERS, tile, unit } from "../head";

export const answer: Answer<RunDiff> = {
  title: "Both runs as wholes",
  nav: "Runs",
  badge: (diff) => DIFFERS[differs(diff) ? "yes" : "no"],
  headline: (_, { verdict }) => verdict,
  account: ({ a, b }) => [h("div", { class: "tiles two" }, side("A", a), side("B", b))],
};

/** Whether any figure differs by more than two runs of one program do. */
export const differs = ({ figures }: RunDiff): boolean => figures.some(({ differs }) => differs);

function side(letter: string, { name, command, host, cost }: RunSide): HTMLElement {
  const faults = cost.minor_faults + cost.major_faults;
  return tile(`${letter}  ${name}`, [nanos(cost.wall), unit("elapsed")], [`${count(faults)} page faults`, cost.max_rss > 0 ? `${bytes(cost.max_rss)} at most` : "", host].filter((text) => text !== "").join(", "), command.length > 0 && h("code", {}, command.join(" ")));
}
