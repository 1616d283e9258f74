/** Where the time of faults goes, as an icicle: own times stacked under their callers. */
import type { FaultPathsPage } from "../../data/faultPaths";
import { h } from "../../dom";
import { choice } from "../../draw/choice";
import type { FlameWords } from "../../draw/flame";
import { flamePanel, installSlash } from "../../draw/flamePanel";
import { nanos } from "../../format";
import { callTree, flameOf } from "../../layout/callTree";
import type { Section } from "../section";
import { kindPicker } from "./kinds";

const WORDS: FlameWords = {
  of: "the time in faults",
  weight: (total) => nanos(total),
  module: (module) => module || "around all layers",
  search: "Search function or layer",
};

export const flame: Section<FaultPathsPage> = {
  id: "paths-flame",
  title: "Flame graph of the time in faults",
  nav: "Fault-time flame graph",
  applies: ({ findings }) => findings.call_map.nodes.length > 0,
  intro: () => "Each box is a function, as wide as its share of the time in all faults, waits and interrupts not counted. Click a box to zoom in, click it again to go back. Colours are layers of the work: allocation, charging, mapping.",
  render: (report) => {
    const { call_map } = report.findings;
    installSlash();
    const state: { kind: string | null; which: "corrected" | "raw" } = { kind: null, which: "corrected" };
    const place = h("div", {});
    const show = () => place.replaceChildren(flamePanel(flameOf(callTree(call_map, state.kind), state.which, report.labels.layers), WORDS, "the time", call_map.nodes_left_out));
    show();
    const picker = kindPicker(report, "Kind of faults", (kind) => {
      state.kind = kind;
      show();
    });
    const which = choice("Times", [["corrected", "corrected"], ["raw", "as traced"]], (value) => {
      state.which = value as "corrected" | "raw";
      show();
    });
    return h("div", {}, h("div", { class: "tools" }, picker, which), place);
  },
};
