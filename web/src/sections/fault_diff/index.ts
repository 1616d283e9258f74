/** The parts of a page about two traces, top to bottom. */
import type { FaultDiffPage } from "../../data/faultDiff";
import type { Section } from "../section";
import { answer } from "./answer";
import { classes } from "./classes";
import { explain } from "./explain";
import { functions, pathChanges } from "./functions";
import { method } from "./method";
import { shifts } from "./shifts";

export const SECTIONS: Section<FaultDiffPage>[] = [answer, classes, explain, shifts, functions, pathChanges, method];
