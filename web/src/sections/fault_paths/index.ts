/** The parts of a page about the faults of a function_graph trace, top to bottom. */
import type { FaultPathsPage } from "../../data/faultPaths";
import type { Section } from "../section";
import { answer } from "./answer";
import { classes } from "./classes";
import { contributors } from "./contributors";
import { flame } from "./flame";
import { layers } from "./layers";
import { locks } from "./locks";
import { outside } from "./outside";
import { paths } from "./paths";
import { patterns } from "./patterns";
import { quality } from "./quality";
import { tail } from "./tail";
import { timeline } from "./timeline";

export const SECTIONS: Section<FaultPathsPage>[] = [answer, classes, patterns, layers, contributors, tail, timeline, flame, locks, paths, outside, quality];
