/** Tables of answers that have no parts of their own: of fleets, `tune`, `gate`, `mine`, `check`, `bench`. */
import type { Page } from "../data/page";
import type { Cell, Look, Sheet, Sheets } from "../data/sheets";
import { h, type Child } from "../dom";
import { strip } from "../draw/bars";
import { copyBox } from "../draw/copy";
import { scatterPlot } from "../draw/scatter";
import { count } from "../format";
import { most, safeLink, scaleOf, type Scale } from "../layout/sheet";
import type { Answer } from "./answer";
import { explorer } from "./explore";
import { tile } from "./head";
import { about, type Section } from "./section";

export const answer: Answer<Sheets> = {
  title: "Tables",
  nav: "Tables",
  badge: ({ badge }) => badge,
  headline: (_, { verdict }) => verdict,
  account: ({ tiles }) => (tiles.length === 0 ? [] : [h("div", { class: "tiles" }, ...tiles.map(({ name, figure, note }) => tile(name, figure, note)))]),
};

/** A part of the page for each table that has rows. */
export const sheetsOf = (page: Page): Section[] => (page.sheets?.sheets ?? []).filter(({ rows }) => rows.length > 0).map(part);

export const samples: Section = about("samples", {
  id: "sample-flame",
  title: "Flame graph",
  nav: "Flame graph",
  applies: ({ profiles }) => profiles!.sides.some((side) => side.tracks.length > 0),
  intro: ({ profiles }) => `Each box is a function, as wide as its weight with everything that it called${profiles!.sides.length > 1 ? "; red has grown, blue has shrunk" : ""}.`,
  render: ({ profiles }) => explorer(profiles!, profiles!.sides[0]!.tracks.map((track) => track.event)),
});

function part(sheet: Sheet): Section {
  const { id, title, nav, intro, is_folded } = sheet;
  return { id, title, nav, folded: is_folded, applies: () => true, ...(intro !== "" && { intro: () => intro }), render: () => table(sheet) };
}

function table({ title, columns, rows, more, scatter }: Sheet): HTMLElement {
  const cells = (column: number) => rows.map((row) => row[column]!);
  const longest = columns.map((_, column) => most(cells(column)));
  const scales = columns.map((_, column) => scaleOf(cells(column)));
  const row = (cells: Cell[]) => h("tr", {}, ...cells.flatMap((cell, column) => drawn(cell, columns[column]!, longest[column]!, scales[column]!, column === 0)));
  const head = columns.flatMap(({ head, look }) => [isDrawn(look) && h("th", { class: "bar-cell" }, h("span", { class: "sr" }, `${head}, drawn`)), h("th", { class: isFigure(look) ? "number" : "" }, head)]);
  return h(
    "div",
    {},
    scatter && scatterPlot(scatter),
    h("div", { class: "scroll" }, h("table", { class: "bars sheet" }, h("caption", { class: "sr" }, title), h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows.map(row)))),
    more > 0 && h("p", { class: "faint" }, `${count(more)} more in JSON (--json).`),
  );
}

const isFigure = (look: Look): boolean => look !== "text" && look !== "code" && look !== "command";
const isDrawn = (look: Look): boolean => look === "bar" || look === "interval";

/** A cell, and before it what is drawn of its figure. */
function drawn(cell: Cell, { head, look }: Sheet["columns"][0], longest: number, scale: Scale, isFirst: boolean): Child[] {
  const { text, note, link, tone, value } = cell;
  const href = link === undefined ? null : safeLink(link);
  const inside: Child = href === null ? text : h("a", { href }, text);
  const words = look === "command" ? copyBox(text) : look === "code" ? h("code", {}, inside) : inside;
  const lines = [tone && tone !== "neutral" ? h("strong", { class: `tone-${tone}` }, words) : words, note !== undefined && h("div", { class: "faint" }, note)];
  const whole = isFirst && !isFigure(look) ? h("th", { scope: "row" }, ...lines) : h("td", { class: isFigure(look) ? "number" : "", "data-head": text === "" ? "" : head }, ...lines);
  if (!isDrawn(look)) return [whole];
  return [h("td", { class: "bar-cell" }, value === undefined ? null : look === "bar" ? strip("kbar k0", Math.abs(value) / longest) : interval(cell, scale)), whole];
}

function interval({ value, interval: ends }: Cell, { at, zero }: Scale): HTMLElement {
  const [low, high] = ends ?? [value!, value!];
  const range = h("span", { class: "interval-range" });
  range.style.left = `${at(low)}%`;
  range.style.width = `${Math.max(0.5, at(high) - at(low))}%`;
  const dot = h("span", { class: "interval-dot" });
  dot.style.left = `${at(value!)}%`;
  const middle = h("span", { class: "interval-zero" });
  middle.style.left = `${zero ?? 1}%`;
  return h("div", { class: "interval" }, middle, range, dot);
}
