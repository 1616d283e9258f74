"""Judges one answer of `pagewise doctor` by the measurements of `truth`."""

import re
from dataclasses import dataclass, field

NOTHING = re.compile(r"[Nn]othing to gain")
COSTLY = ("costly", "severe")
# A gain that is sure to be above that is a cure; a tenth is what the best may be missed by.
WORTH = 1.05
NEARLY_BEST = 0.9
# A setting that surely gains less than that is no cure.
NO_GAIN = 1.02
# Shares differ by a point from run to run.
SLACK = 0.01
# Advice by hand that `truth` has tried, by its name for it.
BY_HAND = {"limit.larger": "a limit of 1 GiB", "pressure.limit": "a limit of 1 GiB", "file.single-pages": "random"}
ROWS = ("user", "kernel", "fault", "waiting")


@dataclass
class Judged:
    """An answer beside the truth. `gains` are what its settings gained in runs of their own, by rule."""

    program: object
    findings: dict
    known: dict
    gains: dict = field(default_factory=dict)

    @property
    def diagnoses(self):
        return self.findings.get("diagnoses", [])

    @property
    def diagnosis(self):
        """Gravest first, so that nothing is costly where the first is not."""
        return self.diagnoses[0]["id"] if self.diagnoses else "none"

    @property
    def advised(self):
        return advised(self.findings)

    @property
    def cause_right(self):
        first = self.diagnoses[0] if self.diagnoses else {"id": "none", "severity": "healthy"}
        names = {first["id"], f"wait.{longest_wait(self.account)}"}
        if first["severity"] not in COSTLY:
            names.add("healthy")
        return bool(names & set(self.program.cause))

    @property
    def best(self):
        """The largest gain that is sure, with its name; nothing where no cure is known."""
        key = f"{self.program.gain}_speedup"
        arms = (self.known or {}).get("arms", {}).items()
        return max(((arm[key]["value"], name) for name, arm in arms if arm[key]["low"] > WORTH), default=None)

    @property
    def proof(self):
        """What `--prove` found; None without it."""
        return self.findings.get("proof")

    @property
    def gain(self):
        """What the arm gained that a proof chose. Without one, what the first advice gained, if no proof
        could try it, since only a hand can do that. 1 without any."""
        chosen = comparison(self.proof, self.proof.get("winner")) if self.proof else None
        if chosen:
            return chosen[f"{self.program.gain}_speedup"]["value"]
        first = self.advised[0] if self.advised else None
        if not first or first["rule"] not in self.gains or (self.proof and first["settings"]):
            return 1.0
        return self.gains[first["rule"]]["value"]

    @property
    def cure_right(self):
        """Whether the fix that `gain` is of is nearly as good as the best known one; None where there is none."""
        if self.best is None:
            return None
        beside = self.findings.get("suite_beside")
        return beside["value"] >= NEARLY_BEST if beside else self.gain >= NEARLY_BEST * self.best[0]

    @property
    def chosen(self):
        """The settings that a proof chose; None where it chose none, or something other than settings."""
        arms = self.proof["arms"] if self.proof else []
        return next((arm["settings"] for arm in arms if arm["name"] == self.proof.get("winner") and arm["settings"]), None)

    @property
    def predictions(self):
        """Advice that a proof tested and that predicts within a factor of four: rule, predicted, found,
        whether the interval holds what was found."""
        told = []
        for one in advised(self.findings) if self.proof else []:
            found, said = proved(self.proof, one["settings"]), one["predicted_speedup"]
            if found and said["low"] < said["high"] < 4 * said["low"]:
                gain = found["cpu_speedup"]
                told.append((one["rule"], said, gain, said["low"] <= gain["value"] <= said["high"]))
        return told

    @property
    def false_cures(self):
        return [rule for rule, gain in self.gains.items() if gain["high"] < NO_GAIN]

    @property
    def false_nothing(self):
        """Whether it says that there is nothing to gain where there is, or where another cause is known."""
        cured = self.best is not None or "healthy" not in self.program.cause
        return bool(NOTHING.search(self.findings["verdict"])) and cured

    @property
    def account(self):
        return self.findings["evidence"]["run"].get("account") or {}

    @property
    def unexplained(self):
        """Share of the CPU time that no evidence explains."""
        return self.account["unexplained"]["value"] / self.cpu_time if self.account.get("unexplained") else 1.0

    @property
    def cpu_time(self):
        cost = self.findings["evidence"]["run"]["cost"]
        return max(cost["user"] + cost["system"], 1)

    def rows(self):
        """Whether each row of the account overlaps the truth: name, told, true, agreed."""
        told, true = shares_told(self.account, self.cpu_time), (self.known or {}).get("shares") or {}
        return [(name, told[name], true[name], overlap(told[name], true[name])) for name in ROWS if name in told and name in true]


def advised(findings):
    """Advice that can be tried."""
    return [one for one in findings.get("advice", []) if one["settings"] or one["rule"] in BY_HAND]


def proved(proof, settings):
    """The comparison that tests these settings; None without one."""
    return comparison(proof, next((arm["name"] for arm in proof["arms"] if arm["settings"] == settings), None))


def comparison(proof, name):
    """The confirmation of an arm, else how it did in the rounds; None where it was not run."""
    found = [proof.get("confirmation"), *proof["comparisons"]]
    return next((one for one in found if one and one["arm"] == name and one["pairs"]), None)


def variables(settings, out):
    """Settings as the environment that applies them; None takes a variable away."""
    found = {}
    for setting in settings:
        if setting["kind"] == "env":
            found[setting["name"]] = setting["value"]
        elif setting["kind"] == "unset":
            found[setting["name"]] = None
        elif setting["kind"] == "glibc_tunable":
            join(found, "GLIBC_TUNABLES", f"{setting['name']}={setting['value']}")
        elif setting["kind"] == "preload":
            join(found, "LD_PRELOAD", setting["path"])
        else:
            found["BENCH_WRAP"] = str(out / "without_huge_pages")
    return found


def join(found, name, item):
    found[name] = f"{found[name]}:{item}" if name in found else item


def longest_wait(account):
    """The kind of waiting that took most of the elapsed time."""
    waits = [part for part in account.get("elapsed", []) if part["id"] not in ("cpu", "ready", "unseen", "kernel")]
    return max(waits, key=lambda part: part["time"]["value"], default={"id": "nothing"})["id"]


def shares_told(account, cpu_time):
    """The account's rows that `truth` measures, too, as shares with bounds."""
    told = {}
    if account.get("cpu"):
        def of(*ids):
            return [part["time"] for part in account["cpu"] if part["id"] in ids]

        # Recording overhead stands apart in the account, and no truth has it.
        observer = total(of("observer"), 1)
        own_time = max(cpu_time - observer["value"], 1)
        kernel, opposite = account["kernel"], {"value": "value", "low": "high", "high": "low"}
        told["user"] = total(of("own", "allocator", "collector"), own_time)
        told["kernel"] = {bound: max(kernel[bound] - observer[opposite[bound]], 0) / own_time for bound in opposite}
        # Without the kernel's stacks nothing is told where faults were not timed either.
        if of("fault") or account.get("entries"):
            told["fault"] = total(of("fault"), own_time)
    first = first_thread(account)
    if first:
        told["waiting"] = waiting(first)
    return told


def first_thread(account):
    """The main thread of the process that was started; nothing where it was not counted."""
    processes = (account.get("tasks") or {}).get("processes", [])
    ids = {process["pid"] for process in processes}
    return next((thread["all"] for process in processes if process["parent"] not in ids
                 for thread in process["threads"] if thread["tid"] == process["pid"]), None)


def waiting(thread):
    """The share of its life without being ready for a CPU in which it waited."""
    part = {one["id"]: one["time"] for one in thread["parts"]}
    ready = part.get("ready", {"value": 0})["value"]
    waits = [time for name, time in part.items() if name not in ("cpu", "ready", "unexplained")]
    told = total(waits, max(thread["lifetime"] - ready, 1))
    open_share = part.get("unexplained", {"value": 0})["value"] / max(thread["lifetime"] - ready, 1)
    return {**told, "high": min(1.0, told["high"] + open_share)}


def total(times, whole):
    return {bound: sum(time[bound] for time in times) / whole for bound in ("value", "low", "high")}


def overlap(told, true):
    return told["low"] - SLACK <= true["high"] and true["low"] - SLACK <= told["high"]
