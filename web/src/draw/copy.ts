/** Text to copy, with a copy button. */
import { h } from "../dom";

/**
 * Our own texts, shown line by line unchanged; odd characters are escaped in the file from which
 * they come.
 */
export function copyBox(text: string): HTMLElement {
  const code = h("code", {});
  // Long values may break after their separators; the breaks are not part of the text.
  for (const piece of text.split(/(?<=[:=,])/)) code.append(piece, document.createElement("wbr"));
  const button = h("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", () => {
    void copy(text, code).then((done) => {
      button.textContent = done ? "Copied" : "Select and copy";
      setTimeout(() => (button.textContent = "Copy"), 1_600);
    });
  });
  return h("div", { class: "copy-box" }, h("pre", { tabindex: 0 }, code), button);
}

/** The clipboard where the page may use it; otherwise the text is selected for the reader. */
async function copy(text: string, shown: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const range = document.createRange();
    range.selectNodeContents(shown);
    getSelection()?.removeAllRanges();
    getSelection()?.addRange(range);
    return false;
  }
}
