/**
 * The contents of the chosen range: flame graph, functions, callers and callees of one, processes
 * and CPUs.
 */
import { h } from "../../dom";
import { track } from "../../draw/bars";
import { changeWords, flameGraph, type FlameData, type FlameGraph, type FlameWords } from "../../draw/flame";
import { flipButton } from "../../draw/flamePanel";
import { tabGroup } from "../../draw/tabs";
import { count, percent } from "../../format";
import { changeOf, functions, type Amounts, type FunctionRow } from "../../layout/amounts";
import { processes, type Explorer } from "../../layout/explorer";
import { sandwich, type Half } from "../../layout/sandwich";
import { byThread, rowsOf } from "../../layout/slice";
import { amountWords, eventWords, weightWords } from "./words";

export interface Results {
  element: HTMLElement;
  /** Shows another choice of samples. */
  show: () => void;
  /** Applies another search; returns the matching share of the choice. */
  find: () => number;
}

/** Number of functions listed. */
const MOST = 60;

export function results(explorer: Explorer): Results {
  const { tree, frames } = explorer.profiles;
  let amounts = explorer.amounts();
  const words: FlameWords = { get of() { return eventWords(explorer.event); }, weight: (amount) => amountWords(explorer, amount), module: (module) => module || "unknown file", search: "" };
  const data = (): FlameData => ({ tree, frames, amounts, root: "all" });
  const status = h("p", { class: "faint status", "aria-live": "polite" }, "\u00a0");
  const reset = h("button", { type: "button", class: "quiet", hidden: true, id: "profile-zoom" }, "Show all");
  const both = h("button", { type: "button", class: "quiet", id: "profile-sandwich", disabled: true }, "Callers and callees");
  let selected: number | null = null;
  const graph = flameGraph(data(), words, {
    selected: (node, text) => {
      status.textContent = text;
      selected = node === 0 ? null : tree.frames[node]!;
      both.disabled = selected === null;
    },
    zoomed: () => (reset.hidden = !graph.isZoomed()),
  });
  reset.addEventListener("click", graph.reset);
  const empty = h("p", { class: "absent", hidden: true }, "The selection has no samples.");
  const flame = h("div", {}, h("div", { class: "tools" }, status, h("span", { class: "spring" }), both, reset, flipButton(graph.flip, "profile-flip")), empty, graph.element);
  const open = (frame: number) => {
    halves.choose(frame, amounts);
    group.choose(2);
  };
  both.addEventListener("click", () => selected !== null && open(selected));
  const table = h("div", {});
  const halves = sandwichPanel(explorer, words);
  const tasks = h("div", {});
  // Tables are built when they are shown: a drag must be quick.
  const make: Record<number, () => void> = {
    1: () => table.replaceChildren(functionTable(explorer, amounts, open)),
    2: () => halves.redo(amounts),
    3: () => tasks.replaceChildren(taskTables(explorer)),
  };
  const stale = new Set<number>();
  const lazy = (chosen: number) => {
    if (stale.delete(chosen)) make[chosen]?.();
  };
  const group = tabGroup("What is in the range", [
    { name: "Flame graph", content: flame },
    { name: "Functions", content: table },
    { name: "Callers and callees", content: halves.element },
    { name: "Processes and CPUs", content: tasks },
  ], lazy);
  const show = () => {
    amounts = explorer.amounts();
    empty.hidden = amounts.widths[0]! > 0;
    graph.show(data());
    group.rename(0, `${explorer.base ? "Differential flame" : "Flame"} graph of ${words.of}`);
    graph.find(explorer.matches);
    for (const panel of [1, 2, 3]) stale.add(panel);
    lazy(group.chosen());
  };
  show();
  return {
    element: group.element,
    show,
    find: () => {
      halves.find();
      stale.add(1);
      lazy(group.chosen());
      return graph.find(explorer.matches).share;
    },
  };
}

/**
 * A table of functions, those with the largest own weight first; if two sides are compared, by how
 * much they changed.
 */
function functionTable(explorer: Explorer, amounts: Amounts, open: (frame: number) => void): HTMLElement {
  const { tree, frames } = explorer.profiles;
  const rows = functions(tree, frames.length, amounts);
  const matches = explorer.matches;
  const isPair = amounts.base !== null;
  const size = isPair ? (row: FunctionRow) => Math.abs(row.total[1] - row.total[0]) : (row: FunctionRow) => row.own[1] || row.total[1] * 1e-9;
  const wanted = rows.filter((row) => !matches || matches[row.frame] === 1).sort((a, b) => size(b) - size(a));
  const all = amounts.widths[0]! || 1;
  const whole: [number, number] = [amounts.base?.[0] ?? 0, amounts.chosen?.[0] ?? 0];
  const figure = (value: number) => h("td", { class: "number" }, isPair ? amountWords(explorer, value) : percent(value / all));
  const line = (row: FunctionRow) => {
    const { name, module } = frames[row.frame]!;
    const button = h("button", { type: "button", class: "link", title: "Callers and callees" }, name || "(no name)");
    button.addEventListener("click", () => open(row.frame));
    const differs = changeOf(row.total[0], row.total[1], whole, amounts.samples);
    const cells = isPair ? [figure(row.total[0]), figure(row.total[1]), h("td", { class: "number" }, changeWords(differs))] : [figure(row.own[1]), figure(row.total[1])];
    return h("tr", {}, h("th", { scope: "row" }, button, h("div", { class: "faint" }, module)), ...cells);
  };
  const heads = isPair ? ["Base, with callees", "Chosen", "Change"] : ["Own", "With callees"];
  return h(
    "div",
    { class: "scroll" },
    h("table", { class: "functions" }, h("caption", {}, `${count(wanted.length)} functions${matches ? " match the search" : ""}${wanted.length > MOST ? `; the first ${MOST}` : ""}`), h("thead", {}, h("tr", {}, h("th", {}, "Function"), ...heads.map((head) => h("th", { class: "number" }, head)))), h("tbody", {}, ...wanted.slice(0, MOST).map(line))),
  );
}

function sandwichPanel(explorer: Explorer, words: FlameWords): { element: HTMLElement; choose: (frame: number, amounts: Amounts) => void; redo: (amounts: Amounts) => void; find: () => void } {
  const { tree, frames } = explorer.profiles;
  const element = h("div", {}, h("p", { class: "absent" }, "Choose a function in the flame graph or in the list of functions."));
  let frame: number | null = null;
  let graphs: FlameGraph[] = [];
  const redo = (amounts: Amounts) => {
    if (frame === null) return;
    const { callers, callees } = sandwich(tree, amounts, frame, explorer.ranks);
    const { name, module } = frames[frame]!;
    const status = h("p", { class: "faint status", "aria-live": "polite" }, "\u00a0");
    const draw = (half: Half) => {
      const graph = flameGraph({ tree: half.tree, frames, amounts: half.amounts, root: name }, words, { selected: (_, text) => (status.textContent = text), zoomed: () => {} });
      graph.find(explorer.matches);
      return graph;
    };
    graphs = [draw(callers), draw(callees)];
    graphs[0]!.flip();
    const total = callees.amounts.widths[0]!;
    const all = amounts.widths[0]!;
    element.replaceChildren(
      h("p", { class: "lead" }, h("code", {}, name || "(no name)"), ` ${module}: ${explorer.base ? percent(all > 0 ? total / all : 0) : `${weightWords(explorer, total)}, ${percent(all > 0 ? total / all : 0)}`} of all`),
      h("h3", {}, "Callers"),
      graphs[0]!.element,
      h("h3", {}, "Callees"),
      graphs[1]!.element,
      status,
    );
  };
  return {
    element,
    choose: (wanted, amounts) => {
      frame = wanted;
      redo(amounts);
    },
    redo,
    find: () => graphs.forEach((graph) => graph.find(explorer.matches)),
  };
}

/** Tables of the chosen range's weight by process and CPU. */
function taskTables(explorer: Explorer): HTMLElement {
  const { chosen, profiles } = explorer;
  const found = explorer.slice(chosen.side);
  if (!found) return h("p", { class: "absent" }, "The selection has no samples.");
  const range = chosen.rest ? null : chosen.range;
  const threads = byThread(found, range);
  const all = threads.reduce((sum, weight) => sum + weight, 0) || 1;
  const ofProcesses = processes({ ...profiles, sides: [profiles.sides[chosen.side]!] }, [threads]).filter(({ weight }) => weight > 0);
  const { track, side } = found;
  const cpus = new Float64Array(track.cpuNumbers.length);
  const [from, to] = rowsOf(found, range);
  for (let at = from; at < to; at += 1) cpus[track.cpus[at]!]! += typeof track.weight === "number" ? track.weight : track.weight[at]!;
  const ofThreads = [...threads.keys()].filter((at) => threads[at]! > 0).sort((a, b) => threads[b]! - threads[a]!);
  const { comms, comm, pids, tids } = side.threads;
  const threadRows = ofThreads.slice(0, MOST).map((at): Row => [`${comms[comm[at]!] || "(no name)"} ${pids[at]}/${tids[at]}`, threads[at]! / all]);
  return h(
    "div",
    { class: "columns" },
    shares("Processes", ofProcesses.length, ofProcesses.slice(0, MOST).map(({ key, name, weight }): Row => [`${name || "(no name)"} ${key}`, weight / all])),
    shares("Threads", ofThreads.length, threadRows),
    shares("CPUs", track.cpuNumbers.length, track.cpuNumbers.map((cpu, at): Row => [cpu < 0 ? "unknown" : `CPU ${cpu}`, cpus[at]! / all]).slice(0, MOST * 2)),
  );
}

type Row = [name: string, share: number];

function shares(title: string, of: number, rows: Row[]): HTMLElement {
  const most = rows.reduce((most, [, share]) => Math.max(most, share), 1e-9);
  const line = ([name, share]: Row) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "bar-cell" }, track("needed", share / most)), h("td", { class: "number" }, percent(share)));
  return h("table", { class: "bars" }, h("caption", {}, `${title}${of > rows.length ? `, ${rows.length} of ${count(of)}` : ""}`), h("tbody", {}, ...rows.map(line)));
}
