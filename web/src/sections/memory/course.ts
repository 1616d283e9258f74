/** The memory of a run over time, in layers. */
import type { Memory } from "../../data/schema";
import { h } from "../../dom";
import { legend, timePane, type Pane } from "../../draw/series";
import { bytes } from "../../format";
import { layers, looks } from "../../layout/memory";
import type { Section } from "../section";

/** Fewer looks show no course. */
const LEAST = 3;

export const memoryCourse: Section<Memory> = {
  id: "memory-course",
  title: "Memory over time",
  nav: "Memory over time",
  applies: (memory) => looks(memory).length >= LEAST,
  intro: (memory) => `What ${looks(memory).length} looks at the run saw, one layer on top of the other: together they are the resident memory.`,
  render: (memory) => {
    const pane: Pane = { title: "Resident memory by layer", lines: layers(memory), isStacked: true, unit: "bytes", label: bytes, end: looks(memory).at(-1)!.elapsed_ns };
    return h("div", {}, legend(pane), h("div", {}, timePane(pane)));
  },
};
