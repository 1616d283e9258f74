/** Light and dark: the system's choice until the reader picks one. Paper is always light. */
import { h } from "./dom";

type Theme = "light" | "dark";
const watchers = new Set<() => void>();
const system = matchMedia("(prefers-color-scheme: dark)");
let chosen: Theme | null = null;
let isPrinting = false;

const onScreen = (): Theme => chosen ?? (system.matches ? "dark" : "light");

/** Calls `redraw` when colours change; canvases do not follow style sheets by themselves. */
export function onTheme(redraw: () => void): void {
  watchers.add(redraw);
}

/** The value of a colour in the style sheet. */
export const color = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function apply(): void {
  document.documentElement.dataset["theme"] = isPrinting ? "light" : onScreen();
  watchers.forEach((redraw) => redraw());
}

/** Follows the system, the reader and the printer from now on. */
export function installTheme(): void {
  system.addEventListener("change", apply);
  const print = (starts: boolean) => () => {
    isPrinting = starts;
    apply();
  };
  addEventListener("beforeprint", print(true));
  addEventListener("afterprint", print(false));
  apply();
}

export function themeButton(): HTMLElement {
  const button = h("button", { type: "button", class: "quiet", id: "theme" });
  const label = () => {
    const other = onScreen() === "dark" ? "Light" : "Dark";
    button.textContent = other;
    button.setAttribute("aria-label", `${other} colours`);
  };
  button.addEventListener("click", () => {
    chosen = onScreen() === "dark" ? "light" : "dark";
    apply();
  });
  onTheme(label);
  label();
  return button;
}
