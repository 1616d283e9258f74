/**
 * Names come from untrusted programs. Control, bidirectional and zero-width characters are written
 * out, so that a name shows what it is; `visible.rs` is the Rust counterpart.
 */
const ACTIVE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export function visible(text: string): string {
  return text.replace(ACTIVE, (c) => {
    if (c === "\n") return "\\n";
    if (c === "\t") return "\\t";
    return `\\u{${c.charCodeAt(0).toString(16)}}`;
  });
}
