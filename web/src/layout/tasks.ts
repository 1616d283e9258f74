/** Time by process and thread: rows with bars that add up. */
import type { ProcessTime, Tasks, TaskSum, TimePart } from "../data/schema";
import type { Part } from "./cost";

/** Number of processes shown before the rest is requested. */
export const PROCESSES_SHOWN = 6;

/** Number of threads of a process shown before the rest is requested. */
export const THREADS_SHOWN = 4;

export interface Row {
  name: string;
  /** Elapsed nanoseconds from start to end. */
  lived: number;
  /** Nanoseconds on a CPU. */
  cpu: number;
  /** Parts of the lifetimes of its threads. */
  parts: Part[];
}

export interface ProcessRows extends Row {
  /** Its threads, if there are several. */
  threads: Row[];
}

const COLOURS: Record<string, Part["id"]> = { cpu: "user", ready: "kernel", unexplained: "rest" };
const is = (id: string) => (part: TimePart) => part.id === id;

export const cpuOf = (sum: TaskSum): number => sum.parts.find(is("cpu"))?.time.value ?? 0;

/** Colours of waits, the longest first. */
const WAITS: Part["id"][] = ["violet", "rose", "teal", "amber"];

/** The parts of a sum: each wait has a colour of its own, and those for which there is none are one part. */
function partsOf(sum: TaskSum): Part[] {
  const left = [...WAITS];
  const share = (nanos: number) => (sum.lifetime > 0 ? nanos / sum.lifetime : 0);
  const parts: Part[] = [];
  let others = 0;
  for (const { id, label, places, time } of sum.parts) {
    const colour = COLOURS[id] ?? left.shift();
    if (colour === undefined) others += time.value;
    else parts.push({ id: colour, name: places[0] === undefined ? label : `${label} (${places[0]})`, nanos: time.value, share: share(time.value) });
  }
  if (others > 0) parts.push({ id: "faults", name: "other waits", nanos: others, share: share(others) });
  return parts;
}

const row = (name: string, lived: number, all: TaskSum): Row => ({ name, lived, cpu: cpuOf(all), parts: partsOf(all) });

const threadsOf = (count: number): string => (count === 1 ? "1 thread" : `${count} threads`);

function processRows(process: ProcessTime): ProcessRows {
  const { name, pid, all, others } = process;
  const several = all.threads > 1;
  const threads = several ? process.threads.map((thread) => row(`${thread.name} ${thread.tid}`, thread.all.lifetime, thread.all)) : [];
  if (others) threads.push(row(`${threadsOf(others.threads)} more, added up`, others.lifetime, others));
  return { ...row(several ? `${name} ${pid}, ${threadsOf(all.threads)}` : `${name} ${pid}`, process.lifetime, all), threads };
}

/** Processes, then the sums of those that have no row. */
export function taskRows(tasks: Tasks): ProcessRows[] {
  const rest: [TaskSum | null | undefined, string][] = [
    [tasks.others, "of other processes, added up"],
    [tasks.unseen, "ended unseen"],
  ];
  const sums = rest.flatMap(([sum, what]) => (sum ? [{ ...row(`${threadsOf(sum.threads)} ${what}`, sum.lifetime, sum), threads: [] }] : []));
  return [...tasks.processes.map(processRows), ...sums];
}

const PROCESS_COLOURS: Part["id"][] = ["user", "violet", "rose", "kernel"];

/** The CPU time of a run by process; and, last, the time that belongs to none of them. */
export function cpuByProcess(tasks: Tasks): Part[] {
  const all = tasks.processes.map((process) => ({ name: `${process.name} ${process.pid}`, nanos: cpuOf(process.all) }));
  const shown = all.slice(0, PROCESS_COLOURS.length);
  const others = all.slice(shown.length).reduce((sum, { nanos }) => sum + nanos, tasks.others ? cpuOf(tasks.others) : 0);
  const whole = all.reduce((sum, { nanos }) => sum + nanos, 0) + (tasks.others ? cpuOf(tasks.others) : 0) + tasks.elsewhere;
  const parts: Part[] = shown.map(({ name, nanos }, at) => ({ id: PROCESS_COLOURS[at]!, name, nanos, share: 0 }));
  parts.push({ id: "faults", name: "other processes", nanos: others, share: 0 });
  parts.push({ id: "rest", name: "in threads not seen", nanos: tasks.elsewhere, share: 0 });
  return parts.filter(({ nanos }) => nanos > 0).map((part) => ({ ...part, share: part.nanos / whole }));
}
