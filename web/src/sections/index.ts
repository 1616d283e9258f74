import type { Page } from "../data/page";
import { BESIDE_FAULTS, PROFILE_FIRST, SECTIONS as profile } from "./profile";
import { SECTIONS as profileDiff } from "./profile_diff";
import type { Report } from "../data/types";
import type { ProfileData } from "../data/profile";
import type { Section } from "./section";
import { SECTIONS as faultDiff } from "./fault_diff";
import { SECTIONS as faultPaths } from "./fault_paths";
import { SECTIONS as hugeBalance } from "./huge_balance";
import { SECTIONS as hugeSimulation } from "./huge_simulation";
import { SECTIONS as paging } from "./paging";
import { answer } from "./answer";
import { causes } from "./causes";
import { churnSizes } from "./churn";
import { flame } from "./flame";
import { host } from "./host";
import { latency } from "./latency";
import { map } from "./map";
import { missing } from "./missing";
import { proof } from "./proof";
import { sites } from "./sites";
import { threads } from "./threads";
import { timeline } from "./timeline";

/** A kind of page: what it is about, and its parts from top to bottom. */
interface Kind<R> {
  /** The command or file that the page is about. */
  subject: (report: R) => string;
  sections: (report: R) => Section<R>[];
}

const FAULTS: Section[] = [proof, timeline, causes, flame, map, sites, latency, churnSizes, threads];
const ENDING: Section[] = [missing, host];

/** A page about a whole machine begins with its samples, one about a program with its faults; so does one of a file of another tool, which tells no CPU times. */
const isOfMachine = ({ findings, profile }: Report): boolean => (findings.collection.whole_machine || findings.cost.user + findings.cost.system === 0) && profile !== null;

/** Every kind of page. A new plot is one module and one line here. */
const KINDS: { [K in Page["kind"]]: Kind<Extract<Page, { kind: K }>> } = {
  findings: {
    subject: (report) => (report.findings.collection.whole_machine ? `all processes${report.command_line && `, during ${report.command_line}`}` : report.command_line || `process ${report.findings.pid}`),
    sections: (report) => (isOfMachine(report) ? [...PROFILE_FIRST.map(ofProfile), { ...answer, title: "Page faults" }, ...FAULTS, ...ENDING] : [answer, ...FAULTS, ...BESIDE_FAULTS.map(ofProfile), ...ENDING]),
  },
  fault_paths: {
    subject: (report) => report.name,
    sections: () => faultPaths,
  },
  profile: {
    subject: (page) => page.command_line || page.name,
    sections: () => profile,
  },
  profile_diff: {
    subject: ({ diff }) => `${diff.a.name} against ${diff.b.name}`,
    sections: () => profileDiff,
  },
  fault_diff: {
    subject: ({ diff }) => `${diff.a.name} against ${diff.b.name}`,
    sections: () => faultDiff,
  },
  huge_simulation: {
    subject: ({ simulation }) => `${simulation.workloads.join(", ")} on ${simulation.machine}`,
    sections: () => hugeSimulation,
  },
  huge_balance: {
    subject: ({ balance }) => balance.command.join(" ") || balance.processes.map((one) => `${one.comm} (${one.pid})`).join(", "),
    sections: () => hugeBalance,
  },
  paging: {
    subject: ({ timeline }) => timeline.command.join(" "),
    sections: () => paging,
  },
};

/** A part about a recording's samples, on the page about its faults. */
function ofProfile(part: Section<ProfileData>): Section {
  const { intro, ...rest } = part;
  return {
    ...rest,
    id: `profile-${part.id}`,
    applies: ({ profile }) => profile !== null && part.applies(profile),
    ...(intro && { intro: ({ profile }: Report) => intro(profile!) }),
    render: ({ profile }) => part.render(profile!),
  };
}

/** The kind of a page; `null` for one that this front end is too old for. */
export function kindOf(page: Page): Kind<Page> | null {
  return Object.hasOwn(KINDS, page.kind) ? (KINDS[page.kind] as Kind<Page>) : null;
}
