/** The first screen: a verdict, and the figures and accounts behind it. */
import type { Page, Parts } from "../data/page";
import { h, type Child } from "../dom";
import { count } from "../format";
import { missingLines } from "../layout/missing";
import { answer as faults } from "./faults/answer";
import { answer as pathsDiff } from "./fault_diff/answer";
import { answer as paths } from "./fault_paths/answer";
import { verdict, type Tone } from "./head";
import { answer as memory } from "./memory/answer";
import { answer as balance } from "./page_sizes/balance";
import { answer as simulation } from "./page_sizes/simulation";
import { answer as paging } from "./paging/answer";
import { answer as profile } from "./profile/answer";
import { answer as profileDiff } from "./profile_diff/answer";
import { answer as sheets } from "./sheets";
import { answer as runDiff, differs } from "./run_diff/answer";
import type { Section } from "./section";

/** The first statement of a part of the page. */
export interface Answer<P> {
  /** Heading and name in the navigation if another part comes first. */
  title: string;
  nav: string;
  badge: (part: P, page: Page) => [word: string, tone: Tone];
  headline: (part: P, page: Page) => string;
  /** Lines that belong to the verdict. */
  below?: (part: P) => Child[];
  /** Tiles, and an account of time. */
  account: (part: P, page: Page) => Child[];
}

const of = <K extends keyof Parts>(part: K, answer: Answer<Parts[K]>): [keyof Parts, Answer<never>] => [part, answer as Answer<never>];

/** The order of parts if a page has several. */
const ANSWERS = [of("run_diff", runDiff), of("profile_diff", profileDiff), of("paths_diff", pathsDiff), of("faults", faults), of("memory", memory), of("profile", profile), of("paths", paths), of("paging", paging), of("balance", balance), of("simulation", simulation), of("sheets", sheets)];

/**
 * Samples are more informative than faults for a whole machine, and for a file of another tool,
 * which contains no CPU times.
 */
const areSamplesFirst = ({ faults, profile }: Page): boolean => faults !== undefined && profile !== undefined && (faults.findings.collection.whole_machine || faults.findings.cost.user + faults.findings.cost.system === 0);

/** If two whole runs do not differ, their samples come first. */
const areSamplesNews = ({ run_diff, profile_diff }: Page): boolean => run_diff !== undefined && profile_diff !== undefined && !differs(run_diff);

function told(page: Page): typeof ANSWERS {
  const found = ANSWERS.filter(([part]) => page[part] !== undefined);
  return areSamplesFirst(page) || areSamplesNews(page) ? found.reverse() : found;
}

export const answer: Section = {
  id: "answer",
  title: "",
  nav: "",
  applies: (page) => told(page).length > 0,
  render: (page) => {
    const [part, { badge, headline, below, account }] = told(page)[0]!;
    const of = page[part] as never;
    return h("div", {}, verdict(...badge(of, page), headline(of, page), ...(below?.(of) ?? [])), ...account(of, page), caution(page));
  },
};

/** The other parts of the page. */
export const beside: Section[] = ANSWERS.map(([part, { title, nav, headline, account }]) => ({
  id: `also-${part.replace("_", "-")}`,
  title,
  nav,
  applies: (page) => told(page).slice(1).some(([other]) => other === part),
  render: (page) => {
    const [first, { headline: said }] = told(page)[0]!;
    // A document of several parts has one verdict.
    const lead = headline(page[part] as never, page);
    return h("div", {}, lead !== said(page[first] as never, page) && h("p", { class: "lead" }, lead), ...account(page[part] as never, page));
  },
}));

/** Below the figures: a note that something is missing from them, with a link to the full list. */
function caution(page: Page): HTMLElement | null {
  const [first, ...others] = missingLines(page);
  if (first === undefined) return null;
  const more = others.length > 0 ? ` and ${count(others.length)} more` : "";
  return h("p", { class: "faint caution" }, "Incomplete: ", first.replace(/\.$/, ""), `${more}. `, h("a", { href: "#missing" }, "What is missing"));
}
