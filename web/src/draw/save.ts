/** Writes what a part of the page shows to files: its tables as CSV and JSON, its plots as PNG or SVG. */
import { h } from "../dom";
import { csv } from "../layout/csv";
import { records } from "../layout/records";

type File = [name: string, content: Blob];

const isShown = (element: Element): boolean => element.getClientRects().length > 0;
const shown = <E extends Element>(part: Element, kind: string): E[] => [...part.querySelectorAll<E>(kind)].filter(isShown);

const cells = (row: HTMLTableRowElement): string[] => [...row.cells].flatMap((cell) => [cell.textContent ?? "", ...Array<string>(Math.max(0, cell.colSpan - 1)).fill("")]);

const tables = (part: Element, content: (rows: string[][]) => BlobPart[], type: string): Blob[] => shown<HTMLTableElement>(part, "table").map((table) => new Blob(content([...table.rows].map(cells)), { type }));

/** A chart with the look that the page's style gives it. */
function drawing(chart: SVGElement): Blob {
  const copy = chart.cloneNode(true) as SVGElement;
  const box = chart.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(box.width));
  copy.setAttribute("height", String(box.height));
  const [own, copied] = [chart, copy].map((root) => [root, ...root.querySelectorAll<SVGElement>("*")]);
  for (const [at, element] of own!.entries()) {
    const look = getComputedStyle(element);
    for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "text-anchor"]) copied![at]!.style.setProperty(name, look.getPropertyValue(name));
  }
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
}

const picture = (canvas: HTMLCanvasElement): Promise<Blob | null> => new Promise((done) => canvas.toBlob(done, "image/png"));

async function pictures(part: Element): Promise<Blob[]> {
  const made = await Promise.all(shown<HTMLCanvasElement>(part, "canvas").map(picture));
  return made.filter((blob) => blob !== null);
}

function named(id: string, ending: string, blobs: Blob[]): File[] {
  return blobs.map((blob, at) => [`pagewise-${id}${blobs.length > 1 ? `-${at + 1}` : ""}.${ending}`, blob]);
}

function write([name, content]: File): void {
  const address = URL.createObjectURL(content);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Buttons below a part that has tables or plots. */
export function saveButtons(section: HTMLElement): void {
  const { id } = section;
  const kinds: [kind: string, ending: string, make: () => Promise<Blob[]>][] = [
    ["table", "csv", async () => tables(section, (rows) => ["\ufeff", csv(rows)], "text/csv")],
    ["table", "json", async () => tables(section, (rows) => [records(rows)], "application/json")],
    ["svg.chart", "svg", async () => shown<SVGElement>(section, "svg.chart").map(drawing)],
    ["canvas", "png", () => pictures(section)],
  ];
  const there = kinds.filter(([kind]) => section.querySelector(kind) !== null);
  if (there.length === 0) return;
  const button = ([, ending, make]: (typeof kinds)[number]): HTMLElement =>
    h("button", { type: "button", class: "quiet", click: () => void make().then((blobs) => named(id, ending, blobs).forEach(write)) }, ending.toUpperCase());
  (section.querySelector(":scope > .fold") ?? section).append(h("div", { class: "save" }, "Save as ", ...there.map(button)));
}
