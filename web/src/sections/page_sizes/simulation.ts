/** The effects of page sizes and controllers, in figures. */
import type { HugeSimulation } from "../../data/schema";
import { h } from "../../dom";
import type { Answer } from "../answer";
import { tile } from "../head";
import { change } from "./words";

export const answer: Answer<HugeSimulation> = {
  title: "Simulated page sizes",
  nav: "Simulation",
  badge: () => ["Simulated", "neutral"],
  headline: (_, { verdict }) => verdict,
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
