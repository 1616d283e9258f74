/** Figures in words, the same in all parts. */
import { axisNanos } from "../../format";

/** A change as a signed percentage. */
export const change = (share: number): string => `${share < 0 ? "−" : "+"}${Math.abs(share) < 0.9995 ? Math.abs(share * 100).toFixed(1) : Math.abs(share * 100).toFixed(0)} %`;

/** Events per second. */
export const rate = (perSecond: number): string =>
  perSecond >= 1e6 ? `${(perSecond / 1e6).toFixed(2)} M/s` : perSecond >= 1e3 ? `${(perSecond / 1e3).toFixed(1)} k/s` : `${perSecond.toFixed(0)}/s`;

/** Simulated seconds on an axis. */
export const seconds = (value: number): string => axisNanos(value * 1e9);
