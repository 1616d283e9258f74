/** What a page may hold; `kind` tells which, and so which sections there are. */
import type { Report } from "./types";

export type Page = Report;
