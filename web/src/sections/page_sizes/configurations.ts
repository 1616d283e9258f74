/** Page sizes side by side. */
import type { HugeSimulation } from "../../data/schema";
import { h } from "../../dom";
import { track } from "../../draw/bars";
import { percent } from "../../format";
import type { Section } from "../section";

export const configurations: Section<HugeSimulation> = {
  id: "page-sizes",
  title: "Page sizes compared",
  nav: "Page sizes",
  applies: (simulation) => simulation.configurations.length > 0,
  intro: () => "Speed of each program relative to small pages without virtualization, and how often a translation was missing from the TLB.",
  render: (simulation) => {
    const most = Math.max(...simulation.configurations.map((row) => row.speed), 1e-9);
    return h(
      "div",
      { class: "scroll" },
      h(
        "table",
        { class: "bars" },
        h("thead", {}, h("tr", {}, ...["Program", "Pages"].map((name) => h("th", {}, name)), h("th", { class: "number" }, "Speed"), h("th", {}), ...["ns per access", "Small refills / 1000", "Huge refills / 1000", "Time in refills"].map((name) => h("th", { class: "number" }, name)))),
        h(
          "tbody",
          {},
          ...simulation.configurations.map((row) => {
            const numbers = [row.ns_per_access.toFixed(2), row.small_per_1000.toFixed(3), row.huge_per_1000.toFixed(3), percent(row.refill_share)];
            return h("tr", {}, h("td", { class: "unbroken" }, row.workload), h("td", { class: "unbroken" }, row.name), h("td", { class: "number" }, `${row.speed.toFixed(2)}×`), h("td", { class: "bar-cell" }, track("needed", row.speed / most)), ...numbers.map((text) => h("td", { class: "number" }, text)));
          }),
        ),
      ),
    );
  },
};
