/** Calls that are not faults, and ends of calls without a start. */
import type { FaultPathsPage, OtherCalls } from "../../data/faultPaths";
import { h } from "../../dom";
import { count, nanos } from "../../format";
import type { Section } from "../section";

const SHOWN = 14;

export const outside: Section<FaultPathsPage> = {
  id: "outside",
  title: "Calls outside faults",
  nav: "Outside",
  folded: true,
  applies: ({ findings }) => findings.other_calls.length + findings.bare_ends.length > 0,
  intro: () => "What was traced outside faults, such as taking the lock before them, as traced. It is not included in any figure about faults.",
  render: ({ findings }) => h("div", {}, table("Outermost calls", findings.other_calls), table("Ends of calls whose beginning is not in the trace, as with tracing_thresh", findings.bare_ends)),
};

function table(title: string, calls: OtherCalls[]): HTMLElement | null {
  if (calls.length === 0) return null;
  const row = ({ function: name, latency }: OtherCalls) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, name)), ...[count(latency.count), nanos(latency.p50_ns), nanos(latency.p99_ns), nanos(latency.max_ns), nanos(latency.sum_ns)].map((figure) => h("td", { class: "number" }, figure)));
  const rest = calls.length - SHOWN;
  return h(
    "div",
    { class: "scroll" },
    h("table", {}, h("caption", {}, title), h("thead", {}, h("tr", {}, h("th", {}, "Function"), ...["Calls", "Median", "99th", "Longest", "Together"].map((head) => h("th", { class: "number" }, head)))), h("tbody", {}, ...calls.slice(0, SHOWN).map(row))),
    rest > 0 && h("p", { class: "faint" }, `${count(rest)} more functions are in the JSON.`),
  );
}
