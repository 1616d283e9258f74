/**
 * The page from top to bottom: verdict, account and tiles, findings, fix, proof, evidence (time,
 * faults, paths, paging, page sizes), machine, method, what is missing. All documents have this
 * order: each section decides from the data whether it applies.
 */
import type { Page } from "../data/page";
import { memoryOf } from "../layout/memory";
import { answer, beside } from "./answer";
import { SECTIONS as explore } from "./explore/section";
import { causes } from "./faults/causes";
import { churnSizes } from "./faults/churn";
import { fix } from "./faults/fix";
import { flame } from "./faults/flame";
import { latency } from "./faults/latency";
import { map } from "./faults/map";
import { proof } from "./faults/proof";
import { sites } from "./faults/sites";
import { tasks } from "./faults/tasks";
import { threads } from "./faults/threads";
import { timeline } from "./faults/timeline";
import { classes as kindsChanged } from "./fault_diff/classes";
import { explain } from "./fault_diff/explain";
import { functions as functionsOfTraces, pathChanges } from "./fault_diff/functions";
import { shifts } from "./fault_diff/shifts";
import { classes } from "./fault_paths/classes";
import { contributors } from "./fault_paths/contributors";
import { flame as timeFlame } from "./fault_paths/flame";
import { layers } from "./fault_paths/layers";
import { locks } from "./fault_paths/locks";
import { outside } from "./fault_paths/outside";
import { paths } from "./fault_paths/paths";
import { patterns } from "./fault_paths/patterns";
import { tail } from "./fault_paths/tail";
import { timeline as traceTimeline } from "./fault_paths/timeline";
import { findings } from "./findings";
import { machine } from "./machine";
import { memoryBeside } from "./memory/beside";
import { memoryBlocks } from "./memory/blocks";
import { memoryCourse } from "./memory/course";
import { memoryGrowth } from "./memory/growth";
import { memoryHolders } from "./memory/holders";
import { memoryRows } from "./memory/rows";
import { touched } from "./memory/touched";
import { method } from "./method";
import { missing } from "./missing";
import { balanceMap } from "./page_sizes/balance";
import { course as balanceCourse } from "./page_sizes/balanceCourse";
import { configurations } from "./page_sizes/configurations";
import { hugeMap } from "./page_sizes/map";
import { reuse } from "./page_sizes/reuse";
import { course as simulationCourse } from "./page_sizes/simulationCourse";
import { sweep } from "./page_sizes/sweep";
import { course as paging } from "./paging/course";
import { distances } from "./paging/distances";
import { counters } from "./profile/counters";
import { functions, stacks } from "./profile_diff/changes";
import { counters as countersOfBoth } from "./profile_diff/counters";
import { runs } from "./run_diff/runs";
import { settings } from "./run_diff/settings";
import { about, within, type Section } from "./section";
import { samples, sheetsOf } from "./sheets";

const TIME: Section[] = [about("faults", tasks), about("faults", timeline), about("profile_diff", functions), about("profile_diff", stacks), ...explore, about("profile", counters), about("profile_diff", countersOfBoth)];
const MEMORY: Section[] = [memoryGrowth, memoryRows, memoryCourse, memoryHolders, touched, memoryBlocks, memoryBeside].map((section) => within(memoryOf, section));
const FAULTS: Section[] = [causes, flame, map, sites, latency, churnSizes, threads].map((section) => about("faults", section));
const PATHS: Section[] = [
  ...[classes, patterns, layers, contributors, tail, traceTimeline, timeFlame, locks, paths, outside].map((section) => about("paths", section)),
  ...[kindsChanged, explain, shifts, functionsOfTraces, pathChanges].map((section) => about("paths_diff", section)),
];
const PAGING: Section[] = [about("paging", paging), about("paging", distances)];
const PAGE_SIZES: Section[] = [
  about("simulation", configurations),
  about("balance", balanceCourse),
  about("simulation", simulationCourse),
  about("balance", balanceMap),
  about("simulation", hugeMap),
  about("simulation", sweep),
  about("simulation", reuse),
];

/** The sections of a page that has something for them. A new plot is one module and one line here. */
export const sectionsOf = (page: Page): Section[] => [...FIRST, ...sheetsOf(page), ...LAST].filter((section) => section.applies(page));

const FIRST: Section[] = [
  answer,
  ...beside,
  about("run_diff", runs),
  findings,
  fix,
  settings,
  proof,
  ...TIME,
  ...MEMORY,
  ...FAULTS,
  ...PATHS,
  ...PAGING,
  ...PAGE_SIZES,
];

const LAST: Section[] = [
  samples,
  machine,
  method,
  missing,
];

/** All sections but those of tables, which a page brings itself. */
export const SECTIONS: Section[] = [...FIRST, ...LAST];
