/** A section of the page. All are listed in order in index.ts; nothing else depends on them. */
import type { Page, Parts } from "../data/page";

/** A section, of the whole page unless stated otherwise. */
export interface Section<P = Page> {
  id: string;
  /** Heading; empty for the answer, which has its own. */
  title: string;
  /** Heading and name in the navigation where they depend on the page. */
  titled?: (page: P) => string | undefined;
  /** Name in the navigation, a word or two; empty to leave it out there. */
  nav: string;
  /** Placed next to its neighbour of half width if there is room. */
  half?: boolean;
  /** Details that few readers need: closed until opened. */
  folded?: boolean;
  /** Whether there is anything to show here. */
  applies: (page: P) => boolean;
  /** One or two sentences: what is shown and how to read it. */
  intro?: (page: P) => string;
  render: (page: P) => HTMLElement;
}

/**
 * A section that shows one part: it applies if the page has that part and the part has something to
 * show.
 */
export const about = <K extends keyof Parts>(part: K, section: Section<Parts[K]>): Section => within((page) => page[part] as Parts[K] | undefined, section);

/** The same of what a part may hold: it applies if this is there and has something to show. */
export function within<T>(find: (page: Page) => T | undefined, { applies, intro, titled, render, ...rest }: Section<T>): Section {
  const of = (page: Page) => find(page) as T;
  return {
    ...rest,
    applies: (page) => find(page) !== undefined && applies(of(page)),
    ...(titled && { titled: (page: Page) => titled(of(page)) }),
    ...(intro && { intro: (page: Page) => intro(of(page)) }),
    render: (page) => render(of(page)),
  };
}
