/**
 * Tabs according to the WAI-ARIA pattern: arrow keys move, one panel is shown; in print all are.
 */
import { h } from "../dom";

let groups = 0;

export interface Tabs {
  element: HTMLElement;
  choose: (panel: number) => void;
  chosen: () => number;
  rename: (panel: number, name: string) => void;
}

/** `opened` is called with each choice. */
export function tabGroup(label: string, panels: { name: string; content: HTMLElement }[], opened: (panel: number) => void): Tabs {
  groups += 1;
  const group = `tabs${groups}`;
  const buttons = panels.map(({ name }, index) =>
    h("button", { type: "button", role: "tab", id: `${group}-${index}`, "aria-controls": `${group}-panel-${index}` }, name),
  );
  const bodies = panels.map(({ name, content }, index) =>
    h(
      "div",
      { role: "tabpanel", id: `${group}-panel-${index}`, "aria-labelledby": `${group}-${index}` },
      h("div", { class: "print-label" }, name),
      content,
    ),
  );
  let current = 0;
  const choose = (chosen: number) => {
    current = chosen;
    buttons.forEach((button, index) => {
      button.setAttribute("aria-selected", String(index === chosen));
      button.tabIndex = index === chosen ? 0 : -1;
    });
    bodies.forEach((body, index) => body.toggleAttribute("data-off", index !== chosen));
    opened(chosen);
  };
  buttons.forEach((button, index) => {
    button.addEventListener("click", () => choose(index));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step === undefined) return;
      const next = (index + step + buttons.length) % buttons.length;
      choose(next);
      buttons[next]?.focus();
    });
  });
  choose(0);
  const element = h("div", { class: "tabs" }, h("div", { role: "tablist", "aria-label": label }, ...buttons), ...bodies);
  const rename = (panel: number, name: string) => {
    buttons[panel]!.textContent = name;
    bodies[panel]!.querySelector(":scope > .print-label")!.textContent = name;
  };
  return { element, choose, chosen: () => current, rename };
}

export const tabs = (label: string, panels: { name: string; content: HTMLElement }[]): HTMLElement => tabGroup(label, panels, () => {}).element;
