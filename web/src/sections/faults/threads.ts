import type { Report } from "../../data/types";
import { barTable } from "../../draw/bars";
import { count, percent } from "../../format";
import type { Section } from "../section";

/** Number of threads shown; a program may have thousands. */
const MOST = 40;

export const threads: Section<Report> = {
  id: "threads",
  title: "By thread",
  nav: "Threads",
  folded: true,
  applies: (report) => report.findings.by_thread.length > 1,
  intro: (report) => {
    const all = report.findings.by_thread.length;
    return all > MOST ? `The ${MOST} threads with most faults, of ${count(all)}.` : "Faults of each thread.";
  },
  render: (report) => {
    const total = report.findings.by_thread.reduce((sum, thread) => sum + thread.faults, 0);
    const bars = report.findings.by_thread.slice(0, MOST).map((thread) => ({
      name: [thread.comm || "(no name)"],
      share: thread.faults,
      figures: [`${thread.pid} / ${thread.tid}`, count(thread.faults), percent(total > 0 ? thread.faults / total : 0)],
      ink: "needed",
    }));
    return barTable("Faults by thread", ["Thread", "Process / thread id", "Faults", "Share"], bars);
  },
};
