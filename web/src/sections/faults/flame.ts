import type { Report } from "../../data/types";
import type { FlameWords } from "../../draw/flame";
import { flamePanel, installSlash } from "../../draw/flamePanel";
import { count } from "../../format";
import type { Section } from "../section";

export const flame: Section<Report> = {
  id: "flame",
  title: "Flame graph of page faults",
  nav: "Fault flame graph",
  applies: (report) => report.findings.flame.total > 0 && report.findings.flame.children.length > 0,
  intro: () =>
    "Which code caused the faults. Each box is a function, as wide as its share of all faults; what it called is next to it. Click a box to zoom in, click it again to go back. Each file has its own colour.",
  render: (report) => {
    installSlash();
    const root = { ...report.findings.flame, name: report.findings.flame.name || "all" };
    return flamePanel(root, FAULTS, "the faults", report.frames_left_out);
  },
};

/** Boxes weighted by faults. */
const FAULTS: FlameWords = {
  of: "page faults",
  weight: (total) => `${count(total)} faults`,
  module: (module) => module || "unknown file",
  search: "Search function or file",
};
