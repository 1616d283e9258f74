/** Settings in which the hosts differ, and counters side by side. */
import type { ProfileDiffPage } from "../../data/profileDiff";
import { h } from "../../dom";
import { compact, count } from "../../format";
import type { Section } from "../section";

/** Settings shown that are not known to touch what changed. */
const OTHERS = 12;

export const settings: Section<ProfileDiffPage> = {
  id: "settings",
  title: "Settings that differ",
  nav: "Settings",
  applies: ({ diff }) => diff.settings.length > 0,
  intro: () => "Between the two hosts. Those that are known to touch what changed come first.",
  render: ({ diff }) => {
    const [touching, others] = [diff.settings.filter(({ touches }) => touches.length > 0), diff.settings.filter(({ touches }) => touches.length === 0)];
    const row = (setting: (typeof touching)[0]) =>
      h("tr", {}, h("th", { scope: "row" }, h("code", {}, setting.name)), h("td", {}, setting.a ?? "absent"), h("td", {}, setting.b ?? "absent"), h("td", {}, setting.touches.length > 0 && h("div", {}, h("strong", { class: "churn-ink" }, "touches "), setting.touches.slice(0, 4).join(", ")), h("div", { class: "faint" }, setting.reason)));
    const table = (rows: typeof touching) => h("div", { class: "scroll" }, h("table", {}, h("caption", { class: "sr" }, "Settings that differ"), h("thead", {}, h("tr", {}, h("th", {}, "Setting"), h("th", {}, "A"), h("th", {}, "B"), h("th", {}, ""))), h("tbody", {}, ...rows.map(row))));
    const first = touching.length > 0 ? touching : others.slice(0, OTHERS);
    const rest = touching.length > 0 ? others : others.slice(OTHERS);
    return h("div", {}, table(first), rest.length > 0 && h("details", {}, h("summary", {}, `${count(rest.length)} more that are not known to touch what changed`), table(rest)));
  },
};

export const counters: Section<ProfileDiffPage> = {
  id: "counters",
  title: "Counters side by side",
  nav: "Counters",
  applies: ({ diff }) => diff.counters.length > 0,
  intro: () => "A second, and ratios.",
  render: ({ diff }) => {
    // Clocks count nanoseconds: a second of them each second is a CPU.
    const figure = (value: number, name: string) => (name.endsWith("-clock") ? `${(value / 1e9).toFixed(2)} CPUs` : Math.abs(value) >= 100 ? compact(value) : value.toPrecision(3));
    const row = ({ name, a, b }: (typeof diff.counters)[0]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number" }, figure(a, name)), h("td", { class: "number" }, figure(b, name)), h("td", { class: "number" }, a > 0 ? `${b >= a ? "+" : "−"}${(100 * Math.abs(b / a - 1)).toFixed(1)}\u00a0%` : ""));
    return h("div", { class: "scroll" }, h("table", { class: "functions" }, h("caption", { class: "sr" }, "Counters of both"), h("thead", {}, h("tr", {}, h("th", {}, "Counter"), h("th", { class: "number" }, "A"), h("th", { class: "number" }, "B"), h("th", { class: "number" }, "Change"))), h("tbody", {}, ...diff.counters.map(row))));
  },
};
