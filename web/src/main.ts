/** Reads the data, lays out the page. Sections come from the table in sections/index.ts. */
import "./style.css";
import { load } from "./data/load";
import type { Page } from "./data/page";
import { visible } from "./data/visible";
import { h } from "./dom";
import { kindOf } from "./sections";
import type { Section } from "./sections/section";
import { installTheme, themeButton } from "./theme";
import { installTips } from "./tooltip";

type Part = Section<Page>;

function header(subject: string, shown: Part[]): HTMLElement {
  const links = shown.filter((section) => section.nav !== "");
  return h(
    "header",
    {},
    h("div", { class: "bar-top" }, h("span", { class: "brand" }, "Pagewise"), h("code", { class: "command", title: visible(subject) }, subject), themeButton()),
    h("nav", { "aria-label": "Parts of this report" }, ...links.map((section) => h("a", { href: `#${section.id}` }, section.nav))),
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
  return h(
    "section",
    { id: section.id, class: "card", "aria-labelledby": `${section.id}-title` },
    h("h2", { id: `${section.id}-title` }, section.title),
    intro !== undefined && h("p", { class: "intro" }, intro),
    body(report, section),
  );
}

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
    root.replaceChildren(header(subject, shown), h("main", {}, ...shown.map((section) => part(report, section))));
    installTips();
  } catch (error) {
    fail(root, error);
    throw error;
  }
}

void show();
