/** Horizontal bars as a table: they wrap, print and can be read aloud without a canvas. */
import { h, type Child } from "../dom";

/** Smallest width of a bar that is not zero, per cent. */
const LEAST = 0.4;

/** A bar as long as its share of the available width; zero has no length. */
export function strip(ink: string, share: number): HTMLElement {
  const fill = h("div", { class: `bar ${ink}` });
  fill.style.width = `${share > 0 ? Math.max(LEAST, share * 100) : 0}%`;
  return fill;
}

/** The same on its track. */
export const track = (ink: string, share: number): HTMLElement => h("div", { class: "track" }, strip(ink, share));

/** The same with its figure at the right. */
export const labelled = (ink: string, share: number, figure: string): HTMLElement => h("div", { class: "labelled" }, track(ink, share), h("span", { class: "number" }, figure));

export interface Bar {
  name: Child[];
  share: number;
  figures: string[];
  ink: string;
}

/** `minor` lists the heads of columns that are hidden on narrow screens. */
export function barTable(caption: string, heads: string[], bars: Bar[], minor: string[] = []): HTMLElement {
  const ink = (column: number) => (minor.includes(heads[column + 1] ?? "") ? "number minor" : "number");
  const most = Math.max(...bars.map((bar) => bar.share), 1e-12);
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "bars" },
      h("caption", { class: "sr" }, caption),
      h("thead", {}, h("tr", {}, h("th", {}, heads[0] ?? ""), h("th", { class: "bar-cell" }, h("span", { class: "sr" }, "bar")), ...heads.slice(1).map((head, column) => h("th", { class: ink(column) }, head)))),
      h("tbody", {}, ...bars.map((bar) => row(bar, most, ink))),
    ),
  );
}

function row(bar: Bar, most: number, ink: (column: number) => string): HTMLElement {
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, ...bar.name),
    h("td", { class: "bar-cell" }, strip(bar.ink, bar.share / most)),
    ...bar.figures.map((figure, column) => h("td", { class: ink(column) }, figure)),
  );
}
