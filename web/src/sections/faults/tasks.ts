/** Time by process and thread: what each did in its lifetime, or waited for. */
import type { Report } from "../../data/types";
import { h } from "../../dom";
import { bar, legend, timeBar } from "../../draw/timeBar";
import { nanos } from "../../format";
import { cpuByProcess, taskRows, THREADS_SHOWN, type Row } from "../../layout/tasks";
import type { Section } from "../section";

/** Parts below this share have no words. */
const LEAST = 0.01;

export const tasks: Section<Report> = {
  id: "tasks",
  title: "Time by process and thread",
  nav: "Processes",
  applies: ({ findings }) => {
    const { tasks } = findings.account;
    return !!tasks && (!!tasks.others || !!tasks.unseen || tasks.processes.reduce((sum, { all }) => sum + all.threads, 0) > 1);
  },
  intro: () => "Each bar is a lifetime: on a CPU, ready to run, waiting. What nothing tells is left open, as unexplained.",
  render: ({ findings }) => {
    const { tasks } = findings.account;
    if (!tasks) return h("div", {});
    const cpu = findings.cost.user + findings.cost.system;
    return h(
      "div",
      {},
      timeBar("CPU time, by process,", cpu, cpuByProcess(tasks)),
      ...taskRows(tasks).map((process) => {
        const few = process.threads.length <= THREADS_SHOWN;
        const threads = process.threads.map(line);
        const folded = few ? h("div", {}, ...threads) : h("details", {}, h("summary", {}, `${process.threads.length} rows`), ...threads);
        return h("div", { class: "process" }, line(process), threads.length > 0 && h("div", { class: "threads" }, folded));
      }),
    );
  },
};

function line({ name, lived, cpu, parts }: Row): HTMLElement {
  return h(
    "figure",
    { class: "task" },
    h("figcaption", {}, h("strong", {}, name), ` lived ${nanos(lived)}, ${nanos(cpu)} on a CPU`),
    bar(name, parts),
    legend(parts.filter(({ share }) => share >= LEAST)),
  );
}
