import { h } from "../dom";
import { GLOSSARY } from "../glossary";

/** The words in these parts of a page that a reader may not know; `null` if there are none. */
export function glossary(parts: HTMLElement[]): HTMLElement | null {
  const text = parts.map((part) => part.textContent).join("\n");
  const used = GLOSSARY.filter(({ match }) => match.test(text));
  if (used.length === 0) return null;
  return h("dl", { class: "glossary" }, ...used.flatMap(({ word, text }) => [h("dt", {}, word), h("dd", {}, text)]));
}
