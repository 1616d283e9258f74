/** What a part of the page is. All parts are registered in index.ts; nothing else knows them. */
import type { Report } from "../data/types";

/** A part of the page for one kind of report, the recording's findings unless said otherwise. */
export interface Section<R = Report> {
  id: string;
  /** Heading; none for the answer, which has its own. */
  title: string;
  /** Name in the navigation, a word or two; none leaves it out there. */
  nav: string;
  /** Whether this report has anything to show here. */
  applies: (report: R) => boolean;
  /** One or two sentences: what is seen and how to read it. */
  intro?: (report: R) => string;
  render: (report: R) => HTMLElement;
}
