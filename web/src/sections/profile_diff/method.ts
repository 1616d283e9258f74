/** How two profiles were compared. */
import type { ProfileDiffPage } from "../../data/profileDiff";
import type { Measure } from "../../data/profileFindings";
import { h } from "../../dom";
import { nanos } from "../../format";

const AMOUNTS: Record<Measure, string> = {
  share_of_busy: "Amounts are shares of each side's samples.",
  cpus_in_use: "Amounts are CPU time by elapsed time: CPUs in use.",
  per_second: "Amounts are events per second.",
  cpu_seconds_per_run: "Amounts are CPU time of a whole run, however long it took.",
  events_per_run: "Amounts are events of a whole run.",
};

export const compared = ({ diff }: ProfileDiffPage, notes: string[]): HTMLElement =>
  h(
    "ul",
    { class: "evidence" },
    h("li", {}, `${AMOUNTS[diff.measure]} Idle CPUs are left out.`),
    diff.block > 0 && h("li", {}, `${diff.blocks[0]} and ${diff.blocks[1]} blocks of ${nanos(diff.block)} were exchanged between the sides: what differs no more than after such exchanges is chance. Intervals are 95 % each; the chance that any of those called certain is false is below 5 % for all together.`),
    ...notes.map((note) => h("li", {}, note)),
  );
