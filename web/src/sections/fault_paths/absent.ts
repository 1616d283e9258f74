/** What a part says where the trace does not hold what it would need. */
import { h } from "../../dom";

/** `why` completes "Not in this trace: …"; `how` says what would bring it. */
export const absent = (why: string, how = ""): HTMLElement => h("p", { class: "absent" }, `Not in this trace: ${why}.`, how !== "" && ` ${how}`);
