"""Judges what doctor says first of a program by what perf and interleaved runs found (truth-*.json)."""

import sys
from dataclasses import dataclass

import catalogue

sys.path.insert(0, str(catalogue.known_programs.HERE))
from judge import COSTLY, NOTHING, advised  # noqa: E402  (the same words and bars as bench/programs)

# Rows of the truth that a diagnosis explains, by the beginning of its name; the first match counts.
EXPLAINS = {
    "churn.": ("fault.anon", "fault.huge", "fault.shared", "memory."),
    "first_touch": ("fault.anon", "fault.huge"),
    "fresh_memory": ("fault.anon", "fault.huge"),
    "read_first": ("fault.anon", "fault.copy", "fault.huge"),
    "huge.": ("fault.huge", "fault.anon"),
    "thp_fallback": ("fault.",),
    "cow.fork": ("fault.copy",),
    "write_protect": ("fault.copy",),
    "file.remap": ("fault.file", "memory."),
    "file.copy": ("fault.copy", "fault.file"),
    "file.read": ("fault.file",),
    "file": ("fault.file",),
    "shared": ("fault.shared",),
    "swap": ("fault.swap",),
    "faults.unknown": ("fault.",),
    "fork.": ("process.", "fault."),
    "lock": ("memory.", "fault."),
    "tlb.flush": ("memory.", "fault."),
    "allocator.hot": ("allocator",),
    "kernel.work": ("call.", "populate", "memory.", "process.", "interrupt"),
}
# Causes that are one thing each: where one of them is the largest, another cause is wrong.
CAUSES = (
    ("fault.anon", "fault.huge"), ("fault.anon", "fault.huge", "memory."), ("fault.copy",), ("fault.file",), ("fault.shared",),
    ("fault.other",), ("fault.swap",), ("populate",), ("memory.",), ("process.",), ("allocator",), ("call.", "interrupt"),
)
# What is below that share of the CPU time need not be said; what is above a tenth must be.
SMALL, LARGE = 0.05, 0.10
# What takes less than that in all is no problem, whatever its share: seconds of CPU time.
LEAST_S = 0.05
# Causes of about the same size may stand in either order.
NEARLY = 0.6
# What a share may be off by: points, or a part of it.
POINTS, PART = 0.08, 0.25
GAINS, LOSES = 1.10, 0.98
SAYS_NO_SETTING = ("No setting cures", "no setting of the allocator cures", "No setting of the allocator cures", "No setting is known", "othing to gain")
# Rules whose settings `truth` tries, by its name for them.
SAME = {
    "glibc.keep-freed-memory": "glibc knobs", "jemalloc.no-decay": "jemalloc, no decay", "preload.jemalloc": "jemalloc, no decay",
    "speed.jemalloc": "jemalloc, no decay", "speed.tcmalloc": "tcmalloc", "preload.tcmalloc": "tcmalloc", "speed.mimalloc": "mimalloc",
    "preload.mimalloc": "mimalloc", "huge.no-huge-pages": "huge pages off", "glibc.huge-pages": "hugetlb=1",
    "v8.semi-space": "semi-space of 128 MiB", "go.rarer-collections": "GOGC 400", "go.lazy-release": "madvdontneed=0",
    "jvm.serial-collector": "serial collector", "php.use-malloc": "malloc for PHP", "ruby.more-slots": "more slots",
}


def share(rows, names):
    """The sum of the rows whose names are these, or start with them where they end in a dot."""
    return sum(value for row, value in rows.items() if any(row == name or (name.endswith(".") and row.startswith(name)) for name in names))


@dataclass
class Judged:
    """One answer beside the truth about its program."""

    name: str
    findings: dict
    truth: dict

    @property
    def rows(self):
        return (self.truth.get("shares") or {}).get("rows", {})

    @property
    def first(self):
        """The first diagnosis that is costly; None where none is."""
        return next((one for one in self.findings["diagnoses"][:1] if one["severity"] in COSTLY), None)

    @property
    def largest(self):
        """The largest cause by perf, apart from the program's own code: its share and rows."""
        return max(((share(self.rows, names), names) for names in CAUSES), key=lambda one: one[0])

    @property
    def waits(self):
        return "mostly waits" in self.findings["verdict"]

    def explained(self):
        """The share that perf found for what is said first, and whether it is the right kind."""
        kind = next((names for name, names in EXPLAINS.items() if self.first["id"].startswith(name)), ())
        if self.first["id"] != "kernel.work":
            return share(self.rows, kind)
        # The headline names one entry: the largest row of that kind must be what it names.
        called = {row: value for row, value in self.rows.items() if any(row.startswith(name) for name in kind)}
        head = self.first["headline"]
        told = {row: value for row, value in called.items() if names_row(head, row)}
        top = max(called.values(), default=0.0)
        return share(self.rows, kind) if max(told.values(), default=0.0) >= NEARLY * top else 0.0

    @property
    def cause(self):
        """`right`, or what is wrong with what is said first."""
        most, names = self.largest
        if self.first is None and most * self.truth["default"]["cpu"] < LEAST_S:
            return "right"
        if self.first is None:
            memory = most >= LARGE and not set(names) & {"call.", "interrupt"}
            calls = most >= LARGE and "kernel" not in self.findings["verdict"] and not self.waits
            return f"says nothing of {' + '.join(names)} {most:.0%}" if memory or calls else "right"
        if self.first["id"] == "collector.hot":
            return "right" if share(self.rows, ("own",)) >= NEARLY * most else f"{' + '.join(names)} {most:.0%} is larger"
        if "share_of_elapsed" in self.first and self.first.get("share_of_elapsed"):
            return "right" if 1 - self.truth["default"]["cpu"] / self.truth["default"]["wall"] > 0.2 else "names a wait that is none"
        found = self.explained()
        if found < NEARLY * SMALL:
            return f"{self.first['id']} is {found:.0%}" + (f", {' + '.join(names)} {most:.0%}" if most >= LARGE else "")
        return "right" if found >= NEARLY * most else f"{self.first['id']} is {found:.0%}, {' + '.join(names)} {most:.0%}"

    @property
    def share_apart(self):
        """The share that is said first, and perf's, where they are apart; None where they agree."""
        told = self.first and self.first.get("share_of_cpu")
        if not told or self.cause != "right" or self.first["id"] in ("collector.hot", "fork.each"):
            return None
        found = self.explained()
        slack = max(POINTS, PART * found)
        agrees = told["low"] - slack <= found <= told["high"] + slack
        return None if agrees else f"says {told['value']:.0%} [{told['low']:.0%}, {told['high']:.0%}], perf {found:.0%}"

    @property
    def best(self):
        """The largest sure gain in CPU time, with its setting; None where nothing gains a tenth."""
        arms = self.truth["arms"].items()
        gains = [(arm["cpu_ratio"]["value"], name) for name, arm in arms if arm["cpu_ratio"].get("low", 0) > 1.05]
        return max((gain for gain in gains if gain[0] >= GAINS), default=None)

    @property
    def fixes(self):
        """Settings that are advised and what the same gained by the truth: rule, ratio, whether it is surely none."""
        for one in advised({**self.findings, "advice": self.findings.get("advice") or []}):
            arm = self.truth["arms"].get(SAME.get(one["rule"]))
            if one["settings"] and arm:
                ratio = arm["cpu_ratio"]
                yield one["rule"], ratio["value"], ratio.get("high", ratio["value"] + 0.02) < (1.02 if "high" in ratio else LOSES)

    @property
    def false_fixes(self):
        return [f"{rule} ×{ratio:.2f}" for rule, ratio, wrong in self.fixes if wrong]

    @property
    def false_no(self):
        """A setting that gains, where it is said that none does."""
        if not self.best or not any(words in self.findings["verdict"] for words in SAYS_NO_SETTING):
            return None
        tried = any(words in self.findings["verdict"] for words in ("--prove tries", "--prove also tries"))
        return None if tried else f"{self.best[1]} ×{self.best[0]:.2f}"

    @property
    def false_clear(self):
        if not NOTHING.search(self.findings["verdict"]):
            return None
        memory = share(self.rows, ("fault.", "memory.", "populate"))
        return f"memory {memory:.0%}" if memory >= LARGE else None


# What the kernel's entries of doctor are called, by what they are about.
ENTRIES = {
    "populating memory": ("populate",), "mapping and unmapping": ("memory.",), "starting and ending processes": ("process.",),
    "starting processes": ("process.",), "interrupts": ("interrupt",), "entering and leaving": ("call.other", "interrupt"),
    "exceptions other": ("interrupt", "call.other"),
}


def names_row(headline, row):
    """Whether a headline of the kernel's work names this row."""
    for words, rows in ENTRIES.items():
        if words in headline:
            return any(row == name or (name.endswith(".") and row.startswith(name)) for name in rows)
    call = row.partition(".")[2]
    if call == "other":
        return True
    names = headline.replace("(", " ").replace(")", " ").replace(",", " ").split()
    return call in names or f"{call}64" in names or call.removesuffix("64") in names
