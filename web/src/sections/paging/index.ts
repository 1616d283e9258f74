import type { PagingPage } from "../../data/paging";
import type { Section } from "../section";
import { answer } from "./answer";
import { course } from "./course";
import { distances } from "./distances";

/** The page about a run under user-level paging, top to bottom. */
export const SECTIONS: Section<PagingPage>[] = [answer, course, distances];
