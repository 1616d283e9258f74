/** Builds elements. Text only ever enters as text nodes, so no name can become markup. */
import { visible } from "./data/visible";

export type Child = Node | string | null | undefined | false;
type Value = string | number | boolean | null | undefined | ((event: never) => void);
export type Attributes = Record<string, Value>;

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "string" ? document.createTextNode(visible(child)) : child);
  }
  return element;
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function s(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** Text whose options (-e, --range-b) and shares (5 %) do not break across lines. */
export const prose = (text: string): Child[] =>
  text
    .replace(/(\d) %/g, "$1\u00a0%")
    .split(/(?<=\s)(--?[a-z][\w-]*)/)
    .map((part, at) => (at % 2 === 1 ? h("span", { class: "unbroken" }, part) : part));
