/** A choice of one out of a few: a row of buttons. */
import { h } from "../dom";

export function choice(label: string, options: [value: string, name: string][], chosen: (value: string) => void): HTMLElement {
  const buttons = options.map(([value, name], index) => {
    const button = h("button", { type: "button", "aria-pressed": index === 0 ? "true" : "false", "data-value": value }, name);
    button.addEventListener("click", () => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      chosen(value);
    });
    return button;
  });
  return h("div", { class: "choice", role: "group", "aria-label": label }, ...buttons);
}
