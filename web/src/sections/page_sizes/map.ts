/** Which memory was huge under each controller. */
import type { HugeSimulation } from "../../data/schema";
import { h } from "../../dom";
import { hugeMap as map, mapLegend } from "../../draw/hugeMap";
import type { Section } from "../section";

export const hugeMap: Section<HugeSimulation> = {
  id: "simulation-map",
  title: "Map of huge pages",
  nav: "Huge-page map",
  applies: (simulation) => simulation.controlled.some((run) => run.map.rows.length > 0),
  intro: () => "Addresses grow upwards. Strong colour: mapped by huge pages; pale: split into small pages.",
  render: (simulation) =>
    h("div", {}, mapLegend(), ...simulation.controlled.filter((run) => run.map.rows.length > 0).map((run) => map(`${run.workload} with ${run.controller}`, run.map))),
};
