/** Time by process and thread: what each did in its lifetime, or waited for. */
import type { Report } from "../../data/types";
import { h } from "../../dom";
import { bar, legend, timeBar } from "../../draw/timeBar";
import { nanos } from "../../format";
import { cpuByProcess, PROCESSES_SHOWN, taskRows, THREADS_SHOWN, type ProcessRows, type Row } from "../../layout/tasks";
import type { Section } from "../section";

/** Parts below this share are not named. */
const LEAST = 0.01;

export const tasks: Section<Report> = {
  id: "tasks",
  title: "Time by process and thread",
  nav: "Processes",
  applies: ({ findings }) => {
    const { tasks } = findings.account;
    return !!tasks && (!!tasks.others || !!tasks.unseen || tasks.processes.reduce((sum, { all }) => sum + all.threads, 0) > 1);
  },
  intro: () => "Each bar is a lifetime: on a CPU, ready to run, waiting. What is not known is shown as unexplained.",
  render: ({ findings }) => {
    const { tasks } = findings.account;
    if (!tasks) return h("div", {});
    const cpu = findings.cost.user + findings.cost.system;
    const processes = taskRows(tasks).map(process);
    const [first, more] = [processes.slice(0, PROCESSES_SHOWN), processes.slice(PROCESSES_SHOWN)];
    return h("div", {}, timeBar("CPU time", cpu, cpuByProcess(tasks), ", by process"), ...first, more.length > 0 && folded(`${more.length} more`, more));
  },
};

function process(rows: ProcessRows): HTMLElement {
  const threads = rows.threads.map(line);
  const shown = threads.length <= THREADS_SHOWN ? threads : [folded(`${threads.length} rows`, threads)];
  return h("div", { class: "process" }, line(rows), threads.length > 0 && h("div", { class: "threads" }, ...shown));
}

const folded = (summary: string, rows: HTMLElement[]): HTMLElement => h("details", {}, h("summary", {}, summary), ...rows);

function line({ name, lived, cpu, parts }: Row): HTMLElement {
  return h(
    "figure",
    { class: "task" },
    h("figcaption", {}, h("strong", {}, name), ` lived ${nanos(lived)}, ${nanos(cpu)} on a CPU`),
    bar(name, parts),
    legend(parts.filter(({ share }) => share >= LEAST)),
  );
}
