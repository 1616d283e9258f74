/** Counters of both sides. */
import type { ProfileDiffPage } from "../../data/profileDiff";
import { h } from "../../dom";
import { compact } from "../../format";
import type { Section } from "../section";

export const counters: Section<ProfileDiffPage> = {
  id: "diff-counters",
  title: "Counters side by side",
  nav: "Counters",
  applies: ({ diff }) => diff.counters.length > 0,
  intro: () => "Per second, and ratios.",
  render: ({ diff }) => {
    // Clocks count nanoseconds: one second of them per second is one CPU.
    const figure = (value: number, name: string) => (name.endsWith("-clock") ? `${(value / 1e9).toFixed(2)} CPUs` : Math.abs(value) >= 100 ? compact(value) : value.toPrecision(3));
    const row = ({ name, a, b }: (typeof diff.counters)[0]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number" }, figure(a, name)), h("td", { class: "number" }, figure(b, name)), h("td", { class: "number" }, a > 0 ? `${b >= a ? "+" : "−"}${(100 * Math.abs(b / a - 1)).toFixed(1)}\u00a0%` : ""));
    return h("div", { class: "scroll" }, h("table", { class: "functions" }, h("caption", { class: "sr" }, "Counters of both"), h("thead", {}, h("tr", {}, h("th", {}, "Counter"), h("th", { class: "number" }, "A"), h("th", { class: "number" }, "B"), h("th", { class: "number" }, "Change"))), h("tbody", {}, ...diff.counters.map(row))));
  },
};
