import type { Page } from "../data/page";
import { BESIDE_FAULTS, SECTIONS as profile } from "./profile";
import { SECTIONS as profileDiff } from "./profile_diff";
import type { Report } from "../data/types";
import type { ProfileData } from "../data/profile";
import type { Section } from "./section";
import { SECTIONS as faultDiff } from "./fault_diff";
import { SECTIONS as faultPaths } from "./fault_paths";
import { SECTIONS as hugeSimulation } from "./huge_simulation";
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

/** A kind of page: what it is about, and its parts from top to bottom. */
interface Kind<R> {
  /** The command or file that the page is about. */
  subject: (report: R) => string;
  sections: Section<R>[];
}

/** Every kind of page. A new plot is one module and one line here. */
const KINDS: { [K in Page["kind"]]: Kind<Extract<Page, { kind: K }>> } = {
  findings: {
    subject: (report) => report.command_line || `process ${report.findings.pid}`,
    sections: [answer, proof, timeline, causes, flame, map, sites, latency, churnSizes, threads, ...BESIDE_FAULTS.map(ofProfile), missing, host, glossary],
  },
  fault_paths: {
    subject: (report) => report.name,
    sections: faultPaths,
  },
  profile: {
    subject: (page) => page.command_line || page.name,
    sections: profile,
  },
  profile_diff: {
    subject: ({ diff }) => `${diff.a.name} against ${diff.b.name}`,
    sections: profileDiff,
  },
  fault_diff: {
    subject: ({ diff }) => `${diff.a.name} against ${diff.b.name}`,
    sections: faultDiff,
  },
  huge_simulation: {
    subject: ({ simulation }) => `${simulation.workloads.join(", ")} on ${simulation.machine}`,
    sections: hugeSimulation,
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
