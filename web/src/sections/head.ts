/** The head of every page: a badge of a few words, the answer in one sentence, and its figures. */
import { ended } from "../data/ending";
import type { Ending, Severity } from "../data/types";
import { h, prose, type Child } from "../dom";

/** Whether the word is bad news, good news, or neither. */
export type Tone = "bad" | "good" | "neutral";

export const SEVERITY: Record<Severity, [badge: string, tone: Tone]> = {
  severe: ["Severe", "bad"],
  costly: ["Costly", "bad"],
  note: ["Worth knowing", "neutral"],
  healthy: ["Healthy", "good"],
};

/** The badge of every comparison. */
export const DIFFERS: Record<"yes" | "no", [badge: string, tone: Tone]> = { yes: ["Differs", "bad"], no: ["No difference found", "good"] };

export const verdict = (badge: string, tone: Tone, headline: string, ...below: Child[]): HTMLElement =>
  h("div", { class: "verdict" }, pill(badge, tone), h("h1", {}, ...prose(headline)), ...below);

export const pill = (word: string, tone: Tone): HTMLElement => h("span", { class: `pill ${tone}` }, word);

/** A figure with its name above and notes below; a `unit` is shown small next to it. */
export function tile(name: Child | Child[], figure: Child | Child[], ...notes: Child[]): HTMLElement {
  const lines = notes.filter((note) => note !== "" && note);
  return h("div", { class: "tile" }, h("div", { class: "tile-name" }, ...[name].flat()), h("div", { class: "figure" }, ...[figure].flat().map(unbroken)), ...lines.map((line) => h("div", { class: "faint" }, line)));
}

/** A figure wraps before its error, never inside it. */
const unbroken = (part: Child): Child => (typeof part === "string" ? part.replace(" ± ", " ±\u00a0") : part);

export const unit = (text: string): HTMLElement => h("small", {}, ` ${text}`);

/** A warning if the program failed. */
export function failure(ending: Ending): HTMLElement | null {
  if (typeof ending === "object" && "exited" in ending && ending.exited === 0) return null;
  return h("p", { class: "warn" }, `The program ${ended(ending)}.`);
}
