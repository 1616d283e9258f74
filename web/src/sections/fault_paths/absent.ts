/** The text of a part if the trace does not contain the necessary data. */
import { h } from "../../dom";

/** `why` completes "Not in this trace: …"; `how` names the remedy. */
export const absent = (why: string, how = ""): HTMLElement => h("p", { class: "absent" }, `Not in this trace: ${why}.`, how !== "" && ` ${how}`);
