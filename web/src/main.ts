/** Reads the data and lays out the page. The list of sections is in sections/index.ts. */
import "./style.css";
import { load } from "./data/load";
import type { Page } from "./data/page";
import { visible } from "./data/visible";
import { saveButtons } from "./draw/save";
import { h, type Attributes, type Child } from "./dom";
import { sectionsOf } from "./sections";
import { glossary } from "./sections/glossary";
import type { Section } from "./sections/section";
import { installTheme, themeButton } from "./theme";
import { installTips } from "./tooltip";
import { keepView } from "./view";

interface Link {
  id: string;
  nav: string;
}

function header(subject: string, parts: Link[]): HTMLElement {
  const links = parts.filter((part) => part.nav !== "");
  return h(
    "header",
    {},
    h("div", { class: "bar-top" }, h("span", { class: "brand" }, "Pagewise"), h("code", { class: "command", title: visible(subject) }, subject), themeButton()),
    h("nav", { "aria-label": "Parts of this report" }, ...links.map(({ id, nav }) => h("a", { href: `#${id}` }, nav))),
  );
}

/** A section that fails shows an error in its place; the others still work. */
function body(page: Page, section: Section): HTMLElement {
  try {
    return section.render(page);
  } catch (error) {
    console.error(section.id, error);
    return h("p", { class: "warn" }, `This part cannot be shown: ${error instanceof Error ? error.message : String(error)}. The other parts don't depend on it.`);
  }
}

function shown(page: Page, section: Section, isHalf: boolean): HTMLElement {
  const { id, folded = false } = section;
  const title = section.titled?.(page) ?? section.title;
  if (title === "") return h("section", { id }, body(page, section));
  const intro = section.intro?.(page);
  const inside = [intro !== undefined && h("p", { class: "intro" }, intro), body(page, section)];
  return folded ? foldedCard(id, title, ...inside) : card(id, title, isHalf ? "card half" : "card", ...inside);
}

const heading = (id: string, title: string): HTMLElement => h("h2", { id: `${id}-title` }, title);
const labelled = (id: string, look: string): Attributes => ({ id, class: look, "aria-labelledby": `${id}-title` });
const card = (id: string, title: string, look: string, ...inside: Child[]): HTMLElement => h("section", labelled(id, look), heading(id, title), ...inside);
const foldedCard = (id: string, title: string, ...inside: Child[]): HTMLElement => h("section", labelled(id, "card"), h("details", { class: "fold" }, h("summary", {}, heading(id, title)), ...inside));

/** What scrolls sideways can be reached, and so scrolled, by the keyboard. */
function reachable(section: HTMLElement): void {
  for (const wide of section.querySelectorAll<HTMLElement>(".scroll")) {
    wide.tabIndex = 0;
    wide.setAttribute("role", "group");
    wide.setAttribute("aria-label", wide.querySelector("caption")?.textContent ?? section.querySelector("h2")?.textContent ?? "table");
  }
}

/** Unfolds a folded section when a link to it is followed, and when printing. */
function unfoldAtLinks(): void {
  const unfold = () => {
    const fold = document.getElementById(location.hash.slice(1))?.querySelector<HTMLDetailsElement>(":scope > .fold");
    if (fold) fold.open = true;
  };
  addEventListener("hashchange", unfold);
  addEventListener("beforeprint", () => document.querySelectorAll<HTMLDetailsElement>(".fold").forEach((fold) => (fold.open = true)));
  unfold();
}

function fail(root: HTMLElement, error: unknown): void {
  const words = error instanceof Error ? error.message : String(error);
  root.replaceChildren(h("p", { class: "warn" }, `This report cannot be shown: its data could not be read (${words}). The file may be truncated; write it again with pagewise report.`));
}

async function show(): Promise<void> {
  const root = document.getElementById("report")!;
  installTheme();
  installTips();
  try {
    const page = await load(document.getElementById("pagewise-data")!, document.getElementById("pagewise-bytes")!);
    document.title = `Pagewise: ${visible(page.subject)}`;
    const sections = sectionsOf(page);
    const isHalf = (at: number): boolean => sections[at]?.half === true && (sections[at - 1]?.half === true || sections[at + 1]?.half === true);
    const parts = sections.map((section, at) => shown(page, section, isHalf(at)));
    const words = glossary(parts);
    const named = sections.map((section) => ({ id: section.id, nav: section.titled?.(page) ?? section.nav }));
    const links: Link[] = words ? [...named, { id: "glossary", nav: "Glossary" }] : named;
    root.replaceChildren(header(page.subject, links), h("main", {}, ...parts, words && card("glossary", "Glossary", "card", words)));
    parts.filter(({ id }) => id !== "answer").forEach(saveButtons);
    parts.forEach(reachable);
    unfoldAtLinks();
    keepView();
  } catch (error) {
    fail(root, error);
    throw error;
  }
}

void show();
