/**
 * Matching for searches: by regular expression, or by plain text if the query is not a valid one.
 * Case is ignored.
 */

/** Whether a text matches; `null` without a search. */
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
