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
export function about<K extends keyof Parts>(part: K, { applies, intro, titled, render, ...rest }: Section<Parts[K]>): Section {
  const of = (page: Page) => page[part] as Parts[K];
  return {
    ...rest,
    applies: (page) => page[part] !== undefined && applies(of(page)),
    ...(titled && { titled: (page: Page) => titled(of(page)) }),
    ...(intro && { intro: (page: Page) => intro(of(page)) }),
    render: (page) => render(of(page)),
  };
}
