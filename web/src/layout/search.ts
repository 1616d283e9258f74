/** What a search finds: a regular expression, or the text as it stands where that is none. Case does not matter. */

/** Whether a text matches; `null` where nothing is searched. */
export function matcher(query: string): ((text: string) => boolean) | null {
  const words = query.trim();
  if (words === "") return null;
  const plain = words.toLowerCase();
  const has = (text: string): boolean => text.toLowerCase().includes(plain);
  try {
    const expression = new RegExp(words, "i");
    return (text) => expression.test(text) || has(text);
  } catch {
    return has;
  }
}
