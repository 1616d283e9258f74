/** The slowest faults compared with all others: what sets them apart. */
import type { Contrast, Excess, FaultPathsPage, Overrepresented } from "../../data/faultPaths";
import { h } from "../../dom";
import { strip } from "../../draw/bars";
import { count, counted, nanos, percent, within } from "../../format";
import type { Section } from "../section";
import { kindsOf } from "./kinds";
import { signed } from "./patterns";

const SHOWN = 8;

export const tail: Section<FaultPathsPage> = {
  id: "tail",
  title: "The slowest faults",
  nav: "Tail",
  applies: ({ findings }) => findings.contrasts.length > 0,
  intro: () => "Where the extra time of the slowest faults comes from, and which functions and paths are more frequent in them than in the others, beyond chance. Times include waits, without the tracer's cost.",
  render: (report) => {
    const { contrasts } = report.findings;
    const body = h("div", {});
    const show = (at: number) => body.replaceChildren(contrast(report, contrasts[at]!));
    show(0);
    const name = (c: Contrast) => `${c.class === null ? "all faults" : kindsOf(report).name(c.class)}, slowest ${percent(1 - c.quantile)}`;
    const select = h("select", { "aria-label": "Faults compared" }, ...contrasts.map((c, at) => h("option", { value: at }, name(c))));
    select.addEventListener("change", () => show(Number(select.value)));
    return h("div", {}, h("div", { class: "tools" }, select), body);
  },
};

function contrast(report: FaultPathsPage, found: Contrast): HTMLElement {
  const words = `${counted(found.tail, "fault")} take ${nanos(found.threshold_ns)} or more: ${within(found.tail_mean_ns, found.error_ns[0])} on average, against ${within(found.body_mean_ns, found.error_ns[1])} of the ${count(found.body)} others.`;
  const tested = found.tests === 0 ? "Too few faults to test which functions are more frequent in the tail." : `${count(found.tests)} functions and paths were tested together; in fewer than one of twenty such traces would chance show any of those above.`;
  return h(
    "div",
    {},
    h("p", { class: "lead" }, words),
    h("div", { class: "columns" }, h("div", {}, h("h3", {}, "What the extra time consists of"), excess(found)), h("div", {}, h("h3", {}, "More frequent in the slow ones"), over(report, found), h("p", { class: "faint" }, tested))),
  );
}

const giveOrTake = ({ ns, error_ns }: Excess): string => `${ns < 0 ? "−" : ""}${nanos(Math.abs(ns))}${error_ns >= 1 ? ` ± ${nanos(error_ns)}` : ""}`;

function excess(found: Contrast): HTMLElement {
  const rows = found.excess.slice(0, 12);
  if (rows.length === 0) return h("p", {}, "Nothing: the tail is empty.");
  const most = Math.max(...rows.map((row) => Math.abs(row.ns)), 1e-9);
  const table = h(
    "table",
    { class: "bars parts" },
    h("caption", { class: "sr" }, "Parts of the extra time"),
    h("thead", {}, h("tr", {}, h("th", {}, "Own time of"), h("th", { class: "bar-cell" }, h("span", { class: "sr" }, "bar")), ...["Extra", "Share", "slow", "others"].map((head) => h("th", { class: "number" }, head)))),
    h(
      "tbody",
      {},
      ...rows.map((row) => {
        return h("tr", {}, h("th", { scope: "row" }, row.wait ? h("em", {}, row.name) : h("code", {}, row.name)), h("td", { class: "bar-cell" }, strip(`kbar ${row.wait ? "k4" : "k1"}`, row.ns / most)), ...[giveOrTake(row), signed(row.share), nanos(row.tail_ns), nanos(row.body_ns)].map((figure) => h("td", { class: "number" }, figure)));
      }),
    ),
  );
  return h("div", { class: "scroll" }, table);
}

function over(report: FaultPathsPage, found: Contrast): HTMLElement {
  const rows = found.functions.slice(0, SHOWN);
  if (rows.length === 0 && found.paths.length === 0) return h("p", {}, "No function and no path beyond chance.");
  return h("div", {}, rows.length > 0 && bars(rows), ...found.paths.slice(0, 3).map((path) => pathLine(report, path)));
}

/** Shares of the slow and of the other faults that have the function. */
function bars(rows: Overrepresented[]): HTMLElement {
  return h(
    "table",
    { class: "bars over" },
    h("caption", { class: "sr" }, "Functions over-represented in slow faults"),
    h("thead", {}, h("tr", {}, h("th", {}, "Function"), h("th", { class: "bar-cell" }, "slow / others"), ...["slow", "others"].map((head) => h("th", { class: "number" }, head)))),
    h(
      "tbody",
      {},
      ...rows.map((row) => {
        const along = row.along.length > 0 && h("div", { class: "faint" }, `with ${row.along.slice(0, 3).join(", ")}${row.along.length > 3 ? ` and ${row.along.length - 3} more` : ""}`);
        return h("tr", {}, h("th", { scope: "row" }, h("code", {}, row.name), along), h("td", { class: "bar-cell" }, strip("kbar k1", row.tail_share), strip("kbar thin kx", row.body_share)), h("td", { class: "number" }, percent(row.tail_share)), h("td", { class: "number" }, percent(row.body_share)));
      }),
    ),
  );
}

function pathLine(report: FaultPathsPage, path: Overrepresented): HTMLElement {
  const kind = path.class === null ? "" : `${kindsOf(report).name(path.class)}: `;
  return h("details", { class: "path" }, h("summary", {}, `${kind}a path of ${percent(path.tail_share)} of the slow and ${percent(path.body_share)} of the other faults`), h("p", { class: "outline" }, h("code", {}, path.name)));
}
