/** The functions from which the time and its variance come. */
import type { Contributor, FaultPathsPage } from "../../data/faultPaths";
import { h } from "../../dom";
import { labelled } from "../../draw/bars";
import { count, interval, nanos, percent } from "../../format";
import type { Section } from "../section";
import { kindPicker } from "./kinds";
import { signed } from "./patterns";

const SHOWN = 15;

export const contributors: Section<FaultPathsPage> = {
  id: "contributors",
  title: "Largest contributors",
  nav: "Contributors",
  applies: ({ findings }) => findings.contributors.length > 0,
  intro: () => "Own time of every function, whatever calls it; the outermost function's own time is a row like any other. Shares of the time add up to the whole, and so do shares of the variance (covariance with the fault's latency, as traced): a function that is long only in slow faults has more of the variance than of the time.",
  render: (report) => {
    const { contributors, calls_below_1us, classes } = report.findings;
    const body = h("div", {});
    const show = (kind: string | null) => {
      const found = kind === null ? contributors : (classes.find((c) => c.class === kind)?.contributors ?? []);
      body.replaceChildren(table(found));
    };
    show(null);
    const below = `${percent(calls_below_1us)} of all calls have less than 1 µs of own time, as traced.`;
    return h("div", {}, h("div", { class: "tools" }, kindPicker(report, "Kind of faults", show), h("span", { class: "faint" }, below)), body);
  },
};

function table(found: Contributor[]): HTMLElement {
  const most = Math.max(...found.map((c) => Math.max(c.corrected_time_share, c.time_share, c.variance_share)), 1e-9);
  const rows = found.map((c) => row(c, most));
  const body = h("tbody", {}, ...rows.slice(0, SHOWN));
  const more = h("button", { type: "button", class: "quiet" }, `Show ${count(rows.length - SHOWN)} more`);
  more.addEventListener("click", () => {
    body.append(...rows.slice(SHOWN));
    more.remove();
  });
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "bars contributors" },
      h("caption", { class: "sr" }, "Functions by own time"),
      h("thead", {}, h("tr", {}, h("th", {}, "Function"), h("th", { class: "number" }, "Calls"), h("th", { class: "number" }, "Own time"), h("th", { class: "number minor" }, "as traced"), h("th", { class: "bar-cell" }, "Share of time, corrected"), h("th", { class: "bar-cell" }, "as traced"), h("th", { class: "bar-cell" }, "Share of variance"))),
      body,
    ),
    rows.length > SHOWN && more,
  );
}

function row(found: Contributor, most: number): HTMLElement {
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, h("code", {}, found.function)),
    h("td", { class: "number" }, count(found.calls)),
    h("td", { class: "number" }, found.error_ns > 0 ? interval(found.corrected_self_ns, [Math.max(0, found.corrected_self_ns - found.error_ns), found.corrected_self_ns + found.error_ns]) : nanos(found.corrected_self_ns)),
    h("td", { class: "number faint minor" }, nanos(found.self_ns)),
    share(found.corrected_time_share, most, "k0"),
    share(found.time_share, most, "k3"),
    share(found.variance_share, most, "k1"),
  );
}

function share(value: number, most: number, ink: string): HTMLElement {
  return h("td", { class: "bar-cell" }, labelled(`kbar ${ink}`, value / most, signed(value)));
}
