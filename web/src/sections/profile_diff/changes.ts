/** Functions and stacks by how much they changed, with intervals. */
import type { ProfileDiffPage } from "../../data/profileDiff";
import type { Change, Measure } from "../../data/profileFindings";
import type { Estimate } from "../../data/types";
import { h } from "../../dom";
import { labelled } from "../../draw/bars";
import { compact, count } from "../../format";
import type { Section } from "../section";

const SHOWN = 20;
const STACKS = 10;

const UNIT: Record<Measure, string> = {
  share_of_busy: "\u00a0% of samples",
  cpus_in_use: "\u00a0% of a CPU",
  per_second: " per second",
  cpu_seconds_per_run: "\u00a0s of CPU time per run",
  events_per_run: " per run",
};
const unit = (measure: Measure): string => UNIT[measure];
const digits = (value: number, measure: Measure): string => {
  if (measure === "per_second" || measure === "events_per_run") return compact(value);
  return measure === "cpu_seconds_per_run" ? value.toFixed(3) : (100 * value).toFixed(2);
};
const signed = (value: number, measure: Measure): string => `${value < 0 ? "−" : "+"}${digits(Math.abs(value), measure)}`;

export const functions: Section<ProfileDiffPage> = {
  id: "functions",
  title: "Functions that changed",
  nav: "Functions",
  applies: ({ diff }) => diff.functions.length > 0,
  intro: ({ diff }) => `With all that they call, in${unit(diff.measure).replace("\u00a0", " ")}; the certain ones first.${divided(diff)} The line is the 95 % interval of the change. A change of ${digits(diff.detectable, diff.measure)}${unit(diff.measure)} in one of the large functions would have been found four times in five.`,
  render: ({ diff }) => {
    const shown = diff.functions.slice(0, SHOWN);
    const most = Math.max(...shown.flatMap(({ change }) => [Math.abs(change.low), Math.abs(change.high)]), 1e-12);
    const sides = Math.max(...shown.flatMap(({ a, b }) => [a, b]), 1e-12);
    const row = (found: Change) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, h("code", {}, found.name || "(no name)"), h("div", { class: "faint" }, found.module)),
        h("td", { class: "bar-cell" }, bar(found.a, sides, "k0", diff.measure), bar(found.b, sides, "k1", diff.measure)),
        h("td", { class: "bar-cell" }, interval(found.change, most, found.significant)),
        h("td", { class: "number" }, `${signed(found.change.value, diff.measure)}`, h("div", { class: "faint" }, `${signed(found.change.low, diff.measure)} to ${signed(found.change.high, diff.measure)}`)),
        h("td", {}, verdict(found)),
      );
    const more = diff.functions.length - shown.length;
    return h(
      "div",
      {},
      h("ul", { class: "legend" }, h("li", {}, h("span", { class: "swatch kbar k0" }), `A ${diff.a.name}`), h("li", {}, h("span", { class: "swatch kbar k1" }), `B ${diff.b.name}`)),
      h("div", { class: "scroll" }, h("table", { class: "bars side-by-side" }, h("caption", { class: "sr" }, "Functions in both profiles"), h("thead", {}, h("tr", {}, h("th", {}, "Function"), h("th", { class: "bar-cell" }, "A and B"), h("th", { class: "bar-cell" }, "B − A"), h("th", { class: "number" }, "Change"), h("th", {}))), h("tbody", {}, ...shown.map(row)))),
      more > 0 && h("p", { class: "faint" }, `${count(more)} more in JSON (--json).`),
    );
  },
};

/** B's amounts at A's speed, where that changes them. */
const divided = ({ slowdown }: ProfileDiffPage["diff"]): string => (slowdown === null || Math.abs(slowdown - 1) < 0.02 ? "" : ` B's amounts are divided by ${slowdown.toFixed(2)}, the factor by which most functions differ.`);

const bar = (value: number, most: number, ink: string, measure: Measure): HTMLElement => labelled(`kbar ${ink}`, value / most, digits(value, measure));

/** The interval around its value, on a scale with zero in the middle. */
function interval({ value, low, high }: Estimate, most: number, sure: boolean): HTMLElement {
  const place = (amount: number) => 50 + (Math.max(-most, Math.min(most, amount)) / most) * 49;
  const range = h("span", { class: "interval-range" });
  range.style.left = `${place(low)}%`;
  range.style.width = `${Math.max(0.5, place(high) - place(low))}%`;
  const dot = h("span", { class: "interval-dot" });
  dot.style.left = `${place(value)}%`;
  return h("div", { class: `interval ${sure ? (value > 0 ? "grew" : "shrank") : ""}` }, h("span", { class: "interval-zero" }), range, dot);
}

const verdict = ({ significant, p_adjusted }: { significant: boolean; p_adjusted: number }): HTMLElement =>
  significant ? h("strong", { class: "sure", title: `chance ${p_adjusted.toPrecision(2)} among all compared` }, "sure") : h("span", { class: "faint" }, "may be chance");

export const stacks: Section<ProfileDiffPage> = {
  id: "stacks",
  title: "Stacks that changed",
  nav: "Stacks",
  applies: ({ diff }) => diff.stacks.some((stack) => stack.significant),
  render: ({ diff }) => {
    const sure = diff.stacks.filter((stack) => stack.significant);
    const line = (stack: (typeof sure)[0]) =>
      h("tr", {}, h("td", { class: "number" }, signed(stack.change.value, diff.measure), h("div", { class: "faint" }, `${signed(stack.change.low, diff.measure)} to ${signed(stack.change.high, diff.measure)}`)), h("td", { class: "way" }, ...folded(stack.frames).flatMap((name, at, all) => [at > 0 ? h("span", { class: "faint" }, " › ") : null, at === all.length - 1 ? h("strong", {}, name) : name])));
    return h("div", { class: "scroll" }, h("table", {}, h("caption", { class: "sr" }, "Stacks that changed beyond chance"), h("thead", {}, h("tr", {}, h("th", { class: "number" }, `Change,${unit(diff.measure).replace("\u00a0", " ")}`), h("th", {}, "Stack, outermost first"))), h("tbody", {}, ...sure.slice(0, STACKS).map(line))));
  },
};

/** Consecutive equal names, as in recursion or broken chains, are shown once with their number. */
function folded(names: string[]): string[] {
  const runs: { name: string; times: number }[] = [];
  for (const name of names) {
    const last = runs.at(-1);
    if (last?.name === name) last.times += 1;
    else runs.push({ name, times: 1 });
  }
  return runs.map(({ name, times }) => (times > 1 ? `${name} ×${times}` : name));
}
