/** What could not be seen or was lost, in all parts. */
import type { Page } from "../data/page";
import { h, type Child } from "../dom";
import { copyBox } from "../draw/copy";
import { percent } from "../format";
import { missingLines } from "../layout/missing";
import type { Section } from "./section";

export const missing: Section = {
  id: "missing",
  title: "What is missing",
  nav: "Missing",
  applies: (page) => missingLines(page).length > 0 || unknown(page) !== null,
  intro: () => "What could not be seen or was lost. The figures above do not include it.",
  render: (page) => h("div", {}, h("ul", { class: "evidence" }, ...missingLines(page).map((line) => h("li", {}, line))), unknown(page)),
};

/** Frames without a name: shares of samples, why, and what brings the names. */
function unknown({ profile, profile_diff }: Page): HTMLElement | null {
  if (profile && profile.findings.unknown.length > 0) {
    const rows = profile.findings.unknown.map(({ touched, own, module, remedy }) => row([touched, own], module, remedy));
    return table("The share of samples whose stacks have such a frame, and of those that end in one.", ["In stacks", "At the end"], rows);
  }
  if (profile_diff && profile_diff.diff.unknown.length > 0) {
    const rows = profile_diff.diff.unknown.map(({ a, b, module, remedy }) => row([a, b], module, remedy));
    return table("Shares of the samples whose stacks have such a frame. If they differ much between A and B, stacks may seem to change that did not.", ["A", "B"], rows);
  }
  return null;
}

function table(intro: string, heads: string[], rows: HTMLElement[]): HTMLElement {
  const head = h("tr", {}, ...heads.map((head) => h("th", { class: "number" }, head)), h("th", {}, "File"), h("th", {}, "What it means, and what to do"));
  return h("div", { id: "unknown" }, h("h3", {}, "Frames without a name"), h("p", { class: "faint" }, intro), h("div", { class: "scroll" }, h("table", {}, h("caption", { class: "sr" }, "Causes of missing names"), h("thead", {}, head), h("tbody", {}, ...rows))));
}

const row = (shares: number[], module: string, remedy: string): HTMLElement => h("tr", {}, ...shares.map((share) => h("td", { class: "number" }, percent(share))), h("td", {}, module || "–"), h("td", {}, ...withCommand(remedy)));

/** A remedy: if it contains a command in backquotes, the command can be copied. */
function withCommand(text: string): Child[] {
  const command = /`([^`]+)`/.exec(text)?.[1];
  return [text, command !== undefined && copyBox(command)];
}
