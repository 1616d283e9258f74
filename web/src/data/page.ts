/** What a page may hold; `kind` tells which, and so which sections there are. */
import type { FaultDiffPage } from "./faultDiff";
import type { FaultPathsPage } from "./faultPaths";
import type { HugeBalancePage } from "./hugeBalance";
import type { HugeSimulationPage } from "./hugeSimulation";
import type { PagingPage } from "./paging";
import type { ProfilePage } from "./profile";
import type { ProfileDiffPage } from "./profileDiff";
import type { Report } from "./types";

export type Page = Report | FaultPathsPage | FaultDiffPage | HugeSimulationPage | HugeBalancePage | PagingPage | ProfilePage | ProfileDiffPage;
