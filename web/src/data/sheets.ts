/** Tables of answers without parts of their own, as written by `crates/report/src/html/sheets.rs`. */
import type { Pack, Profiles } from "./profile";

export type Tone = "bad" | "good" | "neutral";
export type Look = "text" | "code" | "command" | "number" | "bar" | "interval";

export interface Sheets {
  badge: [string, Tone];
  tiles: { name: string; figure: string; note: string }[];
  sheets: Sheet[];
}

export interface Sheet {
  id: string;
  title: string;
  nav: string;
  intro: string;
  columns: { head: string; look: Look }[];
  rows: Cell[][];
  /** Rows that there are besides. */
  more: number;
  scatter?: Scatter;
  is_folded: boolean;
}

/** Two figures of each of several things, each with its text. */
export interface Scatter {
  title: string;
  across: string;
  up: string;
  points: Spot[];
}

export interface Spot {
  name: string;
  x: [number, string];
  y: [number, string];
  is_best: boolean;
}

export interface Cell {
  text: string;
  value?: number;
  interval?: [number, number];
  note?: string;
  link?: string;
  tone?: Tone;
}

/** Samples beside tables: one profile, or two that are compared. */
export interface Samples {
  pack: Pack;
  /** Filled when the page is loaded. */
  profiles?: Profiles;
}
