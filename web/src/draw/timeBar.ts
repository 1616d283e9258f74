/** A time as a bar of its parts, and a legend of the parts. */
import { h } from "../dom";
import { nanos, percent } from "../format";
import type { Part } from "../layout/cost";

/** Only the bar, read aloud as its parts. */
export function bar(of: string, parts: Part[]): HTMLElement {
  const words = parts.map((part) => `${part.name} ${percent(part.share)}`).join(", ");
  const all = h("div", { class: "cpu-bar", role: "img", "aria-label": `${of}: ${words}` });
  for (const part of parts) {
    const piece = h("div", { class: `piece ${part.id}` });
    piece.style.width = `${part.share * 100}%`;
    all.append(piece);
  }
  return all;
}

/** A legend of the parts. */
export function legend(parts: Part[]): HTMLElement {
  return h("ul", { class: "legend" }, ...parts.map((part) => h("li", {}, h("span", { class: `swatch ${part.id}` }), `${part.name} `, h("strong", {}, percent(part.share)), ` ${nanos(part.nanos)}`)));
}

export function timeBar(of: string, all: number, parts: Part[], how = ""): HTMLElement | null {
  if (parts.length === 0) return null;
  return h("figure", { class: "cpu" }, h("figcaption", {}, `Where the ${nanos(all)} of ${of} went${how}`), bar(of, parts), legend(parts));
}
