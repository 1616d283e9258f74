/** What counters counted over the whole recording. */
import type { ProfileData } from "../../data/profile";
import type { ProfileSummary } from "../../data/profileFindings";
import { h } from "../../dom";
import { compact, nanos, percent } from "../../format";
import type { Section } from "../section";

export const counters: Section<ProfileData> = {
  id: "counters",
  title: "Counters",
  nav: "Counters",
  applies: ({ findings }) => findings.counters.length > 0,
  intro: () => "Over the whole recording; their course over time is under the heat map. Counters that the machine lacks are left out, never zero.",
  render: ({ findings }) => {
    const row = ({ name, total, rate, counted }: ProfileSummary["counters"][0]) => {
      const isClock = name.endsWith("-clock");
      const shown = total === null ? "" : isClock ? nanos(total) : compact(total);
      const each = total === null ? rate.toFixed(2) : isClock ? `${(rate / 1e9).toFixed(2)} CPUs` : `${compact(rate)} per second`;
      return h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number" }, shown), h("td", { class: "number" }, each), h("td", { class: "number" }, counted < 0.99 ? `counted ${percent(counted)} of the time, scaled` : ""));
    };
    return h("div", { class: "scroll" }, h("table", { class: "functions plain" }, h("caption", { class: "sr" }, "Counters"), h("thead", {}, h("tr", {}, h("th", {}, "Counter"), h("th", { class: "number" }, "Count"), h("th", { class: "number" }, "Rate"), h("th", {}))), h("tbody", {}, ...findings.counters.map(row))));
  },
};
