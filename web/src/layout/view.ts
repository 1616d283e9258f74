/** What a reader has chosen on a page, as text behind the address's #, so that a link shows the same. */

/** A button that was pressed, or a text that was typed, by the part of the page and its number there. */
export interface Act {
  part: string;
  at: number;
  /** What was typed; none for a button. */
  text?: string;
}

const PREFIX = "view=";
/** More acts than this are more than a link should hold. */
const MOST = 60;

/** The acts with one more: typing replaces what was typed there just before. */
export function added(acts: Act[], act: Act): Act[] {
  const last = acts.at(-1);
  const isSame = act.text !== undefined && last?.text !== undefined && last.part === act.part && last.at === act.at;
  return [...(isSame ? acts.slice(0, -1) : acts), act].slice(0, MOST);
}

export function written(acts: Act[]): string {
  const one = ({ part, at, text }: Act): string => (text === undefined ? `${part}.${at}` : `${part}.${at}.${encodeURIComponent(text).replaceAll(".", "%2E").replaceAll(",", "%2C")}`);
  return acts.length === 0 ? "" : PREFIX + acts.map(one).join(",");
}

/** The acts of a link; what is none is left out. */
export function read(hash: string): Act[] {
  const text = hash.replace(/^#/, "");
  if (!text.startsWith(PREFIX)) return [];
  const acts: Act[] = [];
  for (const word of text.slice(PREFIX.length).split(",").slice(0, MOST)) {
    const found = /^([a-z][a-z-]*)\.(\d{1,4})(?:\.(.*))?$/.exec(word);
    if (found === null) continue;
    const [, part, at, typed] = found;
    try {
      acts.push({ part: part!, at: Number(at), ...(typed !== undefined && { text: decodeURIComponent(typed) }) });
    } catch {
      // A broken escape in a link that someone cut.
    }
  }
  return acts;
}
