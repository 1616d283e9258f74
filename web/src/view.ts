/** Keeps what a reader presses and types behind the address's #, and repeats it where a link has it. */
import { added, read, written, type Act } from "./layout/view";

/** Buttons that only act once. */
const NOT_KEPT = ".copy, .save button, .term";
const BUTTONS = "button";
const FIELDS = "input";

function place(control: Element, kind: string): Omit<Act, "text"> | null {
  const section = control.closest("main > section[id]");
  if (section === null) return null;
  return { part: section.id, at: [...section.querySelectorAll(kind)].indexOf(control) };
}

function repeat({ part, at, text }: Act): void {
  const control = document.getElementById(part)?.querySelectorAll(text === undefined ? BUTTONS : FIELDS)[at];
  if (control instanceof HTMLInputElement && text !== undefined) {
    control.value = text;
    control.dispatchEvent(new Event("input", { bubbles: true }));
  } else if (control instanceof HTMLButtonElement && !control.matches(NOT_KEPT)) control.click();
}

export function keepView(): void {
  let acts = read(location.hash);
  acts.forEach(repeat);
  const first = acts[0];
  if (first !== undefined) document.getElementById(first.part)?.scrollIntoView();
  const keep = (act: Act): void => {
    acts = added(acts, act);
    history.replaceState(null, "", `#${written(acts)}`);
  };
  // Before the press changes what is there.
  document.addEventListener(
    "click",
    (event) => {
      const button = event.isTrusted && event.target instanceof Element ? event.target.closest(BUTTONS) : null;
      const found = button !== null && !button.matches(NOT_KEPT) ? place(button, BUTTONS) : null;
      if (found !== null) keep(found);
    },
    { capture: true },
  );
  document.addEventListener("input", (event) => {
    const field = event.target;
    const found = event.isTrusted && field instanceof HTMLInputElement ? place(field, FIELDS) : null;
    if (found !== null) keep({ ...found, text: (field as HTMLInputElement).value });
  });
}
