/** Colours of series that are told apart, not judged. */
export const INKS = ["needed", "good", "kernel", "violet", "rose"];
