/** One floating box for the whole page: meanings of words and values under the pointer. */
import { h, type Child } from "./dom";

let box: HTMLElement;

/** Shows `content` near a point of the viewport, kept inside the viewport. */
export function showTip(x: number, y: number, ...content: Child[]): void {
  box.replaceChildren(h("div", {}, ...content));
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const left = Math.min(x + 12, innerWidth - width - 8);
  const top = y + 18 + height > innerHeight ? y - height - 12 : y + 18;
  box.style.left = `${Math.max(8, left)}px`;
  box.style.top = `${Math.max(8, top)}px`;
}

export function hideTip(): void {
  box.hidden = true;
}

/** Handles every `.term` on the page, by pointer, focus and tap. Escape closes. */
export function installTips(): void {
  box = h("div", { class: "tooltip", role: "tooltip", hidden: true });
  document.body.append(box);
  const termOf = (event: Event) =>
    event.target instanceof Element ? event.target.closest<HTMLElement>(".term") : null;
  const open = (event: Event) => {
    const word = termOf(event);
    if (!word) return;
    const { left, bottom } = word.getBoundingClientRect();
    showTip(left - 12, bottom - 12, word.dataset["meaning"]);
  };
  const close = (event: Event) => {
    if (termOf(event)) hideTip();
  };
  for (const kind of ["pointerover", "focusin", "click"]) document.addEventListener(kind, open);
  for (const kind of ["pointerout", "focusout"]) document.addEventListener(kind, close);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTip();
  });
}
