/** Colours of series that are distinguished, not judged. */
export const INKS = ["needed", "good", "kernel", "violet", "rose"];
