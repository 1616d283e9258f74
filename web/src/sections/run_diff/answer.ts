/** How two whole runs differ, and a description of each. */
import type { RunCostSide, RunDiff } from "../../data/schema";
import { h } from "../../dom";
import { bytes, count, nanos } from "../../format";
import type { Answer } from "../answer";
import { DIFFERS, tile, unit } from "../head";

export const answer: Answer<RunDiff> = {
  title: "Both runs as wholes",
  nav: "",
  badge: (diff) => DIFFERS[differs(diff) ? "yes" : "no"],
  headline: (_, { verdict }) => verdict,
  account: ({ a, b }) => [h("div", { class: "tiles two" }, side("A", a), side("B", b))],
};

/** Whether any figure differs by more than two runs of the same program do. */
export const differs = ({ figures }: RunDiff): boolean => figures.some(({ differs }) => differs);

function side(letter: string, { name, subject, host, wall, minor_faults, major_faults, max_rss }: RunCostSide): HTMLElement {
  const used = [`${count(minor_faults + major_faults)} page faults`, max_rss > 0 ? `${bytes(max_rss)} at most` : "", host ?? ""];
  const command = subject?.command ?? [];
  return tile(`${letter}  ${name}`, [nanos(wall), unit("elapsed")], used.filter((text) => text !== "").join(", "), command.length > 0 && h("code", {}, command.join(" ")));
}
