/** Reads the data, lays out the page. Sections come from the table in sections/index.ts. */
import "./style.css";
import { load } from "./data/load";
import type { Page } from "./data/page";
import { visible } from "./data/visible";
import { h, type Child } from "./dom";
import { kindOf } from "./sections";
import { glossary } from "./sections/glossary";
import type { Section } from "./sections/section";
import { installTheme, themeButton } from "./theme";
import { installTips } from "./tooltip";

type Part = Section<Page>;

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

/** A part that fails says so in its place; the others still answer. */
function body(report: Page, section: Part): HTMLElement {
  try {
    return section.render(report);
  } catch (error) {
    console.error(section.id, error);
    return h("p", { class: "warn" }, `This part can't be shown: ${error instanceof Error ? error.message : String(error)}. The other parts don't depend on it.`);
  }
}

function part(report: Page, section: Part): HTMLElement {
  if (section.title === "") return h("section", { id: section.id }, body(report, section));
  const intro = section.intro?.(report);
  return card(section.id, section.title, intro !== undefined && h("p", { class: "intro" }, intro), body(report, section));
}

const card = (id: string, title: string, ...inside: Child[]): HTMLElement =>
  h("section", { id, class: "card", "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), ...inside);

function fail(root: HTMLElement, error: unknown): void {
  const words = error instanceof Error ? error.message : String(error);
  root.replaceChildren(h("p", { class: "warn" }, `This report can't be shown: its data could not be read (${words}). The file may be cut short; write it anew with pagewise report.`));
}

async function show(): Promise<void> {
  const root = document.getElementById("report")!;
  installTheme();
  try {
    const report = await load(document.getElementById("pagewise-data")!, document.getElementById("pagewise-bytes")!);
    const kind = kindOf(report);
    if (!kind) throw new Error(`this page can't show reports of the kind ${visible(String(report.kind))}`);
    document.documentElement.dataset["kind"] = report.kind;
    const subject = kind.subject(report);
    document.title = `Pagewise: ${visible(subject)}`;
    const shown = kind.sections(report).filter((section) => section.applies(report));
    const parts = shown.map((section) => part(report, section));
    const words = glossary(parts);
    const links: Link[] = words ? [...shown, { id: "glossary", nav: "Glossary" }] : shown;
    root.replaceChildren(header(subject, links), h("main", {}, ...parts, words && card("glossary", "Words used here", words)));
    installTips();
  } catch (error) {
    fail(root, error);
    throw error;
  }
}

void show();
