/** Light and dark: the system's choice until the reader picks one. Paper is always light. */
import { h } from "./dom";

type Theme = "light" | "dark";
const watchers = new Set<() => void>();
const system = matchMedia("(prefers-color-scheme: dark)");

const current = (): Theme => {
  const chosen = document.documentElement.dataset["theme"];
  if (chosen === "light" || chosen === "dark") return chosen;
  return system.matches ? "dark" : "light";
};

/** Calls `redraw` when colours change; canvases don't follow style sheets by themselves. */
export function onTheme(redraw: () => void): void {
  watchers.add(redraw);
}

/** The value of a colour of the style sheet. */
export const color = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function set(theme: Theme | null): void {
  if (theme) document.documentElement.dataset["theme"] = theme;
  else delete document.documentElement.dataset["theme"];
  watchers.forEach((redraw) => redraw());
}

export function themeButton(): HTMLElement {
  const button = h("button", { type: "button", class: "quiet", id: "theme" });
  const label = () => {
    button.textContent = current() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${current() === "dark" ? "light" : "dark"} colours`);
  };
  button.addEventListener("click", () => {
    set(current() === "dark" ? "light" : "dark");
    label();
  });
  system.addEventListener("change", () => {
    watchers.forEach((redraw) => redraw());
    label();
  });
  printInLight();
  label();
  return button;
}

function printInLight(): void {
  let before: Theme | null = null;
  addEventListener("beforeprint", () => {
    const chosen = document.documentElement.dataset["theme"];
    before = chosen === "light" || chosen === "dark" ? chosen : null;
    set("light");
  });
  addEventListener("afterprint", () => set(before));
}
