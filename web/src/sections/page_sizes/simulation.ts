/** The effects of page sizes and controllers, in figures. */
import type { Configuration, HugeSimulation } from "../../data/schema";
import { h } from "../../dom";
import type { Answer } from "../answer";
import { tile } from "../head";
import { change } from "./words";

export const answer: Answer<HugeSimulation> = {
  title: "Simulated page sizes",
  nav: "Simulation",
  badge: () => ["Simulated", "neutral"],
  headline,
  below: () => [h("p", { class: "faint" }, "Simulated figures are predictions, not measurements.")],
  account: ({ controlled }) => [
    h(
      "div",
      { class: "tiles" },
      ...controlled.map((run) =>
        tile(
          `${run.workload} with ${run.controller}`,
          change(run.gain),
          `speed at rest against huge pages everywhere; ${change(run.gain_whole)} over the whole run`,
          `${run.huge} of ${run.possible} huge pages left; ${run.split} split, ${run.built} built`,
          run.against_alone !== null && `${run.against_alone.toFixed(2)}× as fast as alone`,
          run.reason !== null && `last: ${run.reason}`,
        ),
      ),
    ),
  ],
};

/** A change of speed below this share counts as none, as in the text. */
const MATTERS = 0.01;

function headline(simulation: HugeSimulation): string {
  const { configurations, workloads } = simulation;
  const of = (name: string, workload: string): Configuration | undefined => configurations.find((row) => row.name === name && row.workload === workload);
  const words = workloads.map((workload) => {
    const native = of("native, huge pages", workload);
    const [both, none] = [of("guest, huge at both levels", workload), of("guest, small at both levels", workload)];
    if (!native) return workload;
    const alone = native.speed - 1;
    if (!both || !none) return Math.abs(alone) < MATTERS ? `${workload}: page size does not matter` : `${workload}: huge pages change the speed by ${change(alone)}`;
    const guest = both.speed / none.speed - 1;
    if (Math.max(Math.abs(alone), Math.abs(guest)) < MATTERS) return `${workload}: page size does not matter, neither natively nor in a guest`;
    return `${workload}: huge pages change the speed by ${change(alone)} natively, ${change(guest)} in a guest`;
  });
  return `${words.join("; ")}.`;
}
