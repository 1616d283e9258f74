import { quantile } from "../../data/histogram";
import type { Histogram, Report } from "../../data/types";
import { h } from "../../dom";
import { histogramChart } from "../../draw/histogram";
import { INKS } from "../../draw/inks";
import { axisNanos, count, nanos } from "../../format";
import { logBins } from "../../layout/histogram";
import type { Section } from "../section";

export const latency: Section<Report> = {
  id: "latency",
  title: "How long a fault takes",
  nav: "Latency",
  applies: (report) => (report.findings.time.measured?.count ?? 0) > 0,
  intro: () =>
    "Time in the kernel for each measured fault, from start to end. The axis is logarithmic.",
  render: (report) => {
    const { measured } = report.findings.time;
    const parts = series(report);
    const bins = logBins(parts.map((part) => part.histogram), 4);
    const marks = [0.5, 0.99].map((share) => ({
      value: Math.max(1, quantile(measured!, share)),
      word: `${share === 0.5 ? "half are below" : "99 % are below"} ${nanos(quantile(measured!, share))}`,
    }));
    const svg = histogramChart(bins, {
      title: "Histogram of fault latency",
      names: parts.map((part) => part.name),
      inks: parts.map((part) => part.ink),
      base: 10,
      label: axisNanos,
      marks,
      axes: { up: "faults", across: "time in the kernel, logarithmic" },
    });
    return h(
      "div",
      {},
      h("ul", { class: "legend" }, ...parts.map((part) => h("li", {}, h("span", { class: `swatch ${part.ink}` }), `${part.name} `, h("span", { class: "faint" }, `median ${nanos(quantile(part.histogram, 0.5))}`)))),
      h("div", {}, svg),
      h("p", { class: "faint" }, `${count(measured!.count)} faults were timed; the recorder's own cost is subtracted.`),
    );
  },
};

/** One series for each cause, or a single one if causes were not distinguished. */
function series(report: Report): { name: string; histogram: Histogram; ink: string }[] {
  const { by_cause, measured } = report.findings.time;
  const filled = by_cause.filter(([, histogram]) => histogram.count > 0);
  if (filled.length === 0) return [{ name: "all faults", histogram: measured!, ink: "needed" }];
  const churnFirst = [...filled].sort((a, b) => b[1].count - a[1].count);
  let next = 0;
  return churnFirst.map(([cause, histogram]) => {
    const isChurn = report.churn_causes.includes(cause);
    const ink = isChurn ? "churn" : INKS[next++ % INKS.length]!;
    return { name: report.labels.causes[cause] ?? cause, histogram, ink };
  });
}
