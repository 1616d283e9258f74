/** What a part of the page is. All parts are registered in index.ts; nothing else knows them. */
import type { Report } from "../data/types";

export interface Section {
  id: string;
  /** Heading; none for the answer, which has its own. */
  title: string;
  /** Name in the navigation, a word or two; none leaves it out there. */
  nav: string;
  /** Kinds of report that have such data. */
  kinds: Report["kind"][];
  /** Whether this report has anything to show here. */
  applies: (report: Report) => boolean;
  /** One or two sentences: what is seen and how to read it. */
  intro?: (report: Report) => string;
  render: (report: Report) => HTMLElement;
}
