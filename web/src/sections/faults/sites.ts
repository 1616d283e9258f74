/** Code that faults, and code that returns memory and requests it again. */
import type { Report, Site } from "../../data/types";
import { h } from "../../dom";
import { track } from "../../draw/bars";
import { tabs } from "../../draw/tabs";
import { compact, percent } from "../../format";
import type { Section } from "../section";

/** Number of places shown of each kind; the rest was negligible in every program seen. */
const MOST = 10;

const GROUPS: [string, string, (report: Report) => Site[]][] = [
  ["Faults", "Where pages fault, heaviest first.", (report) => report.findings.sites],
  ["Returned", "Where memory is returned to the kernel.", (report) => report.findings.churn.release_sites],
  ["Requested again", "Where the allocator requests memory from the kernel again.", (report) => report.findings.churn.regrow_sites],
  ["Touched again", "Where the returned pages are touched again, at the price of a fault.", (report) => report.findings.churn.refault_sites],
];

export const sites: Section<Report> = {
  id: "sites",
  title: "Code responsible",
  nav: "Code",
  applies: (report) => GROUPS.some(([, , pick]) => pick(report).length > 0),
  intro: () => "Open a line to see how the program got there, innermost function first.",
  render: (report) =>
    tabs(
      "Kind of place",
      GROUPS.filter(([, , pick]) => pick(report).length > 0).map(([name, words, pick]) => ({
        name,
        content: h("div", {}, h("p", { class: "faint" }, words), ...list(report, pick(report), name === "Faults")),
      })),
    ),
};

function list(report: Report, sites: Site[], areFaults: boolean): HTMLElement[] {
  const sum = sites.reduce((total, site) => total + site.faults, 0);
  const total = areFaults && report.findings.flame.total > 0 ? report.findings.flame.total : sum;
  const most = Math.max(...sites.map((site) => site.faults), 1e-12);
  return sites.slice(0, MOST).map((site) => {
    const ink = report.churn_causes.includes(site.main_cause) ? "churn" : "needed";
    return h(
      "details",
      { class: "site" },
      h(
        "summary",
        {},
        h("span", { class: "site-head" }, h("span", {}, h("code", {}, site.culprit || "(no name)"), areFaults && h("span", { class: "faint" }, ` ${report.labels.causes[site.main_cause] ?? site.main_cause}`)), h("span", { class: "number" }, `${percent(site.faults / total)}`, h("span", { class: "faint" }, ` ${compact(site.faults)}`))),
        track(ink, site.faults / most),
      ),
      h("ol", { class: "stack" }, ...[...site.stack].reverse().map((frame) => h("li", { class: frame === site.culprit ? "culprit" : "" }, h("code", {}, frame)))),
    );
  });
}
