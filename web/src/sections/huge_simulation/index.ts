import type { HugeSimulationPage } from "../../data/hugeSimulation";
import type { Section } from "../section";
import { answer } from "./answer";
import { configurations } from "./configurations";
import { course } from "./course";
import { hugeMap } from "./hugeMap";
import { reuse } from "./reuse";
import { sweep } from "./sweep";

/** The page about simulated huge pages, top to bottom. */
export const SECTIONS: Section<HugeSimulationPage>[] = [answer, configurations, course, hugeMap, sweep, reuse];
