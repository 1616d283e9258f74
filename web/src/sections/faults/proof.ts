/** Whether the change helped: runs, intervals, before and after. */
import type { Comparison, Proof } from "../../data/types";
import { h, s } from "../../dom";
import { track } from "../../draw/bars";
import { chart, xAxis, type Plot } from "../../draw/chart";
import { axisNanos, byteChange, bytes, count, factor, factorRange, isNumber, nanos, percent, UNBOUNDED } from "../../format";
import { linear, linearTicks, log } from "../../layout/axis";
import { armRows, beforeAfter, type Before } from "../../layout/proof";
import { hideTip, showTip } from "../../tooltip";
import type { Section } from "../section";

export const proof: Section = {
  id: "proof",
  title: "Proof",
  nav: "Proof",
  applies: (page) => page.proof !== null,
  intro: () =>
    "The program was run repeatedly, alternately with and without the change, so that a busy machine affects both alike. Each dot is one run; the line marks the median.",
  render: (page) => {
    const proof = page.proof!;
    return h(
      "div",
      {},
      h("p", { class: "lead" }, proof.summary),
      h("div", { class: "columns" }, h("div", {}, runs(proof), speeds(proof)), bars(proof)),
      verdicts(proof),
      ...proof.notes.map((note) => h("p", { class: "faint" }, note)),
    );
  },
};

const ROW = 46;

function runs(proof: Proof): HTMLElement {
  const rows = armRows(proof);
  const most = Math.max(...rows.flatMap((row) => row.walls), 1);
  const height = rows.length * ROW + 34;
  const svg = chart(height, "Elapsed time of each run", (svg, width) => {
    const plot: Plot = { left: 4, right: width - 8, top: 4, bottom: height - 24 };
    const x = linear([0, most * 1.04], [plot.left, plot.right]);
    svg.append(...xAxis(plot, linearTicks(0, most, width / 90).map((tick) => ({ at: x(tick), label: axisNanos(tick) }))));
    rows.forEach((row, index) => {
      const y = index * ROW + 34;
      const ink = row.isWinner ? "good" : index === 0 ? "churn" : "needed";
      svg.append(s("text", { x: plot.left, y: y - 14, class: "tick strong" }, `${row.name}: ${nanos(row.median)}`));
      for (const wall of row.walls) {
        svg.append(
          s("circle", {
            cx: x(wall),
            cy: y,
            r: 4.5,
            class: `dot ${ink}`,
            pointermove: (event: PointerEvent) => showTip(event.clientX, event.clientY, nanos(wall)),
            pointerleave: hideTip,
          }),
        );
      }
      svg.append(s("line", { x1: x(row.median), x2: x(row.median), y1: y - 9, y2: y + 9, class: `median ${ink}` }));
    });
  }, { across: "elapsed time" });
  return h("figure", {}, h("figcaption", {}, "Elapsed time of each run (left is faster)"), h("div", {}, svg));
}

/**
 * Speed-ups with their intervals, on a logarithmic axis so that twice and half are equally far from
 * 1.
 */
function speeds(proof: Proof): HTMLElement | null {
  const rows = proof.comparisons.flatMap((comparison) => [
    { name: `${comparison.arm}: elapsed`, speed: comparison.wall_speedup },
    { name: `${comparison.arm}: CPU`, speed: comparison.cpu_speedup },
  ]);
  const usable = rows.filter(({ speed }) => speed.low > 0 && isNumber(speed.high) && speed.high < UNBOUNDED);
  if (usable.length === 0) return null;
  const ends = usable.flatMap(({ speed }) => [speed.low, speed.high]);
  const domain: [number, number] = [Math.min(0.8, ...ends) * 0.95, Math.max(1.25, ...ends) * 1.1];
  const height = usable.length * 34 + 36;
  const ticks = [0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64].filter((tick) => tick >= domain[0] && tick <= domain[1]);
  const svg = chart(height, "Speed against the program as it is, with 95 % intervals", (svg, width) => {
    const plot: Plot = { left: 4, right: width - 8, top: 4, bottom: height - 24 };
    const x = log(domain, [plot.left, plot.right]);
    svg.append(...xAxis(plot, ticks.map((tick) => ({ at: x(tick), label: `×${tick}` }))));
    svg.append(s("line", { x1: x(1), x2: x(1), y1: plot.top, y2: plot.bottom, class: "mark" }));
    usable.forEach(({ name, speed }, index) => {
      const y = index * 34 + 28;
      const ink = speed.low > 1 ? "good" : speed.high < 1 ? "churn" : "kernel";
      svg.append(
        s("text", { x: plot.left, y: y - 10, class: "tick" }, name),
        s("line", { x1: x(speed.low), x2: x(speed.high), y1: y, y2: y, class: `median ${ink}` }),
        s("circle", { cx: x(speed.value), cy: y, r: 4.5, class: `dot solid ${ink}` }),
      );
    });
  }, { across: "speed, logarithmic" });
  return h("figure", { class: "below" }, h("figcaption", {}, "Speed with the change: right of ×1 is faster, the line is the 95 % interval"), h("div", {}, svg));
}

const show = (row: Before, value: number): string =>
  row.unit === "time" ? nanos(value) : row.unit === "bytes" ? bytes(value) : count(value);

function bars(proof: Proof): HTMLElement | null {
  const pair = beforeAfter(proof);
  if (!pair) return null;
  return h(
    "figure",
    {},
    h("figcaption", {}, `Before, and after with ${pair.arm} (medians)`),
    h(
      "div",
      { class: "pairs" },
      ...pair.rows.map((row) => {
        const most = Math.max(row.before, row.after);
        return h(
          "div",
          { class: "pair" },
          h("div", { class: "pair-name" }, row.name),
          track("churn", row.before / most),
          h("div", { class: "number" }, show(row, row.before)),
          track("good", row.after / most),
          h("div", { class: "number" }, show(row, row.after)),
        );
      }),
    ),
  );
}

const VERDICT: Record<Comparison["verdict"], string> = {
  faster: "faster",
  no_difference: "no difference",
  slower: "slower",
  too_much_memory: "faster, too much memory",
  undecided: "undecided",
  not_reached: "does not reach the program",
  tried_once: "no more runs",
};

function verdicts(proof: Proof): HTMLElement {
  const rows = proof.comparisons.map((comparison) => verdictRow(comparison.arm, comparison));
  if (proof.confirmation) rows.push(verdictRow(`${proof.confirmation.arm}, confirmed by fresh runs`, proof.confirmation));
  const heads: [string, string][] = [["Elapsed", ""], ["CPU", ""], ["Faults left", "minor"], ["Memory", "minor"], ["Pairs", "minor"], ["Verdict", ""]];
  return h(
    "figure",
    { class: "below scroll" },
    h("figcaption", {}, "Speed against the program as it is, with the 95 % interval"),
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, h("th", {}, "Change"), ...heads.map(([head, ink]) => h("th", { class: `number ${ink}` }, head)))),
      h("tbody", {}, ...rows),
    ),
  );
}

function verdictRow(name: string, comparison: Comparison): HTMLElement {
  if (comparison.pairs === 0) {
    return h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "faint", colspan: 6 }, "not tried: out of time"));
  }
  const speed = (ratio: Comparison["wall_speedup"]) =>
    h("td", { class: "number" }, h("strong", {}, factor(ratio.value)), h("div", { class: "faint" }, factorRange(ratio)));
  const ink = comparison.verdict === "faster" ? "good-ink" : comparison.verdict === "slower" ? "churn-ink" : "";
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, name),
    speed(comparison.wall_speedup),
    speed(comparison.cpu_speedup),
    h("td", { class: "number minor" }, percent(comparison.fault_ratio.value)),
    h("td", { class: "number minor" }, byteChange(comparison.rss_change_bytes)),
    h("td", { class: "number minor" }, count(comparison.pairs)),
    h("td", { class: `number verdict-cell ${ink}` }, VERDICT[comparison.verdict]),
  );
}
