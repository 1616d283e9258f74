import type { Section } from "./section";
import { answer } from "./answer";
import { causes } from "./causes";
import { churnSizes } from "./churn";
import { flame } from "./flame";
import { glossary } from "./glossary";
import { host } from "./host";
import { latency } from "./latency";
import { map } from "./map";
import { missing } from "./missing";
import { proof } from "./proof";
import { sites } from "./sites";
import { threads } from "./threads";
import { timeline } from "./timeline";

/** The page, top to bottom. A new kind of plot is one module and one line here. */
export const SECTIONS: Section[] = [
  answer,
  proof,
  timeline,
  causes,
  flame,
  map,
  sites,
  latency,
  churnSizes,
  threads,
  missing,
  host,
  glossary,
];
