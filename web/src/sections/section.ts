/** What a section of the page is. All are listed, in their order, in index.ts; nothing else knows them. */
import type { Page, Parts } from "../data/page";

/** A section, of the whole page unless said otherwise. */
export interface Section<P = Page> {
  id: string;
  /** Heading; none for the answer, which has its own. */
  title: string;
  /** Name in the navigation, a word or two; none leaves it out there. */
  nav: string;
  /** Stands beside its neighbour of half width where there is room. */
  half?: boolean;
  /** Details that few need: closed until they are asked for. */
  folded?: boolean;
  /** Whether there is anything to show here. */
  applies: (page: P) => boolean;
  /** One or two sentences: what is seen and how to read it. */
  intro?: (page: P) => string;
  render: (page: P) => HTMLElement;
}

/** A section that shows one part: it applies where the page has that part, and the part something to show. */
export function about<K extends keyof Parts>(part: K, { applies, intro, render, ...rest }: Section<Parts[K]>): Section {
  const of = (page: Page) => page[part] as Parts[K];
  return {
    ...rest,
    applies: (page) => page[part] !== undefined && applies(of(page)),
    ...(intro && { intro: (page: Page) => intro(of(page)) }),
    render: (page) => render(of(page)),
  };
}
