// The kinds of pages: those of plots, then those of tables.
export const TABLES = ["tuning", "check", "allocator-bench", "fault-bench", "mined", "gate"];
export const PAGES = ["churning", "healthy", "both", "profile", "trace-contend", "paging", "memory", "memory-growth", "huge-balance", "huge-simulation", "huge-sweep", "run-diff", "profile-diff", "trace-diff", ...TABLES];
