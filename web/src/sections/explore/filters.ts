/** Which samples count: event, process, thread, CPU, idle ones. */
import { h } from "../../dom";
import { processes, type Explorer } from "../../layout/explorer";
import { byThread, idleLeaves } from "../../layout/slice";

/**
 * Largest number of options in a list: more would be unmanageable; the others can be reached
 * through an input field.
 */
const MOST = 200;

type Option = [value: string, name: string];

export function filters(explorer: Explorer, events: string[], changed: () => void): HTMLElement {
  const { profiles, tasks } = explorer;
  const apply = () => {
    explorer.refilter();
    changed();
  };
  const event = select("profile-event", "Event", events.map((name): Option => [name, name]), (value) => {
    explorer.event = value;
    idle.hidden = !hasIdle(explorer);
    apply();
  });
  const weights = profiles.sides.map((_, at) => threadWeights(explorer, at));
  const all = processes(profiles, weights);
  const label = (name: string, key: string) => (explorer.isPair ? name || "(no name)" : `${name || "(no name)"} ${key}`);
  const process = select("profile-process", "Process", [["", explorer.isPair ? "all programs" : "all processes"], ...all.slice(0, MOST).map(({ key, name }): Option => [`=${key}`, label(name, key)])], (value) => {
    tasks.process = value === "" ? null : value.slice(1);
    tasks.thread = null;
    fillThreads();
    apply();
  });
  const thread = select("profile-thread", "Thread", [], (value) => {
    tasks.thread = value === "" ? null : Number(value);
    apply();
  });
  const fillThreads = () => {
    const { threads } = profiles.sides[0]!;
    const options: Option[] = [["", "all threads"]];
    // Threads come with the frequent ones first.
    for (let at = 0; at < threads.count && options.length <= MOST; at += 1) {
      if (tasks.process !== null && String(threads.pids[at]) !== tasks.process) continue;
      options.push([String(at), `${threads.comms[threads.comm[at]!] || "(no name)"} ${threads.tids[at]}`]);
    }
    fill(thread, options);
  };
  fillThreads();
  const groups = [...new Set(profiles.sides.flatMap((side) => side.threads.cgroups))].filter((path) => path !== "").sort();
  const cgroup = select("profile-cgroup", "Control group", [["", "all control groups"], ...groups.slice(0, MOST).map((path): Option => [path, path])], (value) => {
    tasks.cgroup = value === "" ? null : value;
    apply();
  });
  const text = h("input", { type: "search", id: "profile-task", placeholder: "name, pid or tid", "aria-label": "Only threads with this name, process id or thread id", autocomplete: "off", spellcheck: "false", class: "short" });
  text.addEventListener("change", () => {
    tasks.text = text.value;
    apply();
  });
  const numbers = [...new Set(profiles.sides.flatMap((side) => side.tracks.flatMap((track) => track.cpuNumbers)))].filter((cpu) => cpu >= 0).sort((a, b) => a - b);
  const cpu = select("profile-cpu", "CPU", [["", "all CPUs"], ...numbers.map((number): Option => [String(number), `CPU ${number}`])], (value) => {
    tasks.cpu = value === "" ? null : Number(value);
    apply();
  });
  const idle = h("button", { type: "button", class: "quiet", id: "profile-idle", "aria-pressed": "false", hidden: !hasIdle(explorer) }, "Show idle CPUs");
  idle.addEventListener("click", () => {
    explorer.idle = !explorer.idle;
    idle.setAttribute("aria-pressed", String(explorer.idle));
    apply();
  });
  const most = Math.max(...profiles.sides.map((side) => side.threads.count));
  return h("div", { class: "tools" }, events.length > 1 && event, all.length > 1 && process, !explorer.isPair && most > 1 && thread, most > 20 && text, groups.length > 1 && cgroup, numbers.length > 1 && cpu, idle);
}

/** Weights of each thread over all events, with the total of each event as one. */
function threadWeights(explorer: Explorer, at: number): Float64Array {
  const side = explorer.profiles.sides[at]!;
  const sums = new Float64Array(side.threads.count);
  for (const track of side.tracks) {
    const weights = byThread({ side, track, whole: null }, null);
    const all = weights.reduce((sum, weight) => sum + weight, 0) || 1;
    for (let thread = 0; thread < sums.length; thread += 1) sums[thread]! += weights[thread]! / all;
  }
  return sums;
}

const hasIdle = (explorer: Explorer): boolean => explorer.profiles.sides.some((side) => side.tracks.some((track) => track.event === explorer.event && idleLeaves(explorer.profiles, track).includes(1)));

function select(id: string, label: string, options: Option[], chosen: (value: string) => void): HTMLSelectElement {
  const element = h("select", { id, "aria-label": label });
  fill(element, options);
  element.addEventListener("change", () => chosen(element.value));
  return element;
}

function fill(element: HTMLSelectElement, options: Option[]): void {
  element.replaceChildren(...options.map(([value, name]) => h("option", { value }, name)));
}
