"""What is true about a program: the cost of runs with each setting that the table of families knows, by wait4(2). This
knows nothing of Pagewise but its table."""
import os
import random
import re
import statistics
import time
import tomllib
from pathlib import Path

RULES = Path(__file__).resolve().parents[2] / "crates/families/rules"
SCREENED = 1.05  # Ratio of CPU time in one run from which a setting gets more runs.
ROUNDS = 4
FINALISTS = 2
GAIN = 1.10  # Ratio from which a setting helps …
SURELY = 1.03  # … if no more than one round has less than this.
LONGEST = 60.0


class Run:
    """One run: CPU seconds, faults, peak KiB, and whether it ended well."""

    def __init__(self, command):
        null = os.open(os.devnull, os.O_RDWR)
        started = time.monotonic()
        pid = os.posix_spawnp(command[0], command, os.environ, setpgroup=0,
                              file_actions=[(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)])
        os.close(null)
        status, usage = waited(pid, started)
        self.cpu = usage.ru_utime + usage.ru_stime
        self.system = usage.ru_stime
        self.faults = usage.ru_minflt + usage.ru_majflt
        self.peak = usage.ru_maxrss
        self.ok = status == 0


def waited(pid, started):
    """Status and usage of a child, which is ended if it takes too long."""
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return status, usage
        if time.monotonic() - started > LONGEST:
            os.killpg(pid, 9)
        time.sleep(0.005)


def applied(environment, settings):
    """The environment with settings in the form of `doctor --json`; none if one is no variable."""
    given = dict(environment)
    for one in settings:
        match one["kind"]:
            case "env":
                given[one["name"]] = one["value"]
            case "unset":
                given.pop(one["name"], None)
            case "preload":
                given["LD_PRELOAD"] = ":".join(filter(None, [one["path"], given.get("LD_PRELOAD")]))
            case "glibc_tunable":
                mine = f"{one['name']}={one['value']}"
                others = [part for part in given.get("GLIBC_TUNABLES", "").split(":") if part and not part.startswith(f"{one['name']}=")]
                given["GLIBC_TUNABLES"] = ":".join([*others, mine])
            case _:
                return None
    return given


def arms(place, kinds, environment, keep):
    """Settings of all rules and recipes of these families: name to variables. Whether a rule's own conditions hold is
    not asked, so that a wrong one shows."""
    found = {}
    libraries = {one["kind"]: one.get("preload", []) for one in map(read, sorted(RULES.glob("*.toml")))}
    for kind in filter(lambda kind: (RULES / f"{kind}.toml").exists(), kinds):
        family = read(RULES / f"{kind}.toml")
        for rule in family.get("rule", []):
            library = place.library(libraries.get(rule.get("library"), [])) if "library" in rule else None
            if not rule.get("settings") or ("library" in rule and not library):
                continue
            filled = [fill(one, {"keep": str(keep), "library": library or ""}, rule.get("join"), environment)
                      for one in rule["settings"]]
            given = None if None in filled else applied(environment, filled)
            if given not in (None, environment, *found.values()):
                found[rule["id"]] = given
    return found


def read(file):
    return tomllib.loads(file.read_text())


def fill(setting, values, join, environment):
    """A rule's setting with its placeholders replaced; none if it has one of the user's own settings in it."""
    done = dict(setting)
    for field in ("value", "path"):
        if field in done:
            done[field] = re.sub(r"\{(\w+)\}", lambda hit: values.get(hit[1], hit[0]), done[field])
            if "{" in done[field]:
                return None
    if join and done["kind"] == "env" and environment.get(done["name"]):
        done["value"] = environment[done["name"]] + join + done["value"]
    return done


def advised(answers, environment):
    """What answers advise first: the arm's name to variables."""
    found = {}
    for answer, _ in answers:
        one = next((one for one in answer.get("advice", []) if one.get("settings")), None)
        given = one and applied(environment, one["settings"])
        if given is not None:
            found[f"advised {one['rule']}"] = given
    return found


def changes(environment, given):
    """What an arm sets and takes away, as text: results of earlier runs with the same changes are its own."""
    names = sorted(name for name in {*environment, *given} if environment.get(name) != given.get(name))
    return " ".join(f"{name}={given[name]}" if name in given else f"-{name}" for name in names)


def measured(start, environment, arms, advice, known):
    """Costs of the default and of the arms. `start(environment)` gives the command; what was advised gets all rounds,
    other arms if one run shows a gain. Arms of which earlier runs (`known`) show the cost are not run again."""
    done = {arm["sets"]: arm for arm in known["arms"].values()} if known else {}
    sets = {name: changes(environment, given) for name, given in {**arms, **advice}.items()}
    result = {name: done[sets[name]] for name in sets
              if sets[name] in done and (name in arms or done[sets[name]].get("rounds", ROUNDS) > 1)}
    fresh = {name: given for name, given in {**arms, **advice}.items() if name not in result}
    if known and not fresh:
        return {**known, "arms": result}
    bases = [Run(start(environment))]
    if not bases[0].ok:
        raise RuntimeError("the program fails without any setting")
    first = {name: Run(start(given)) for name, given in fresh.items()}
    gain = {name: bases[0].cpu / max(run.cpu, 1e-3) for name, run in first.items() if run.ok}
    promising = sorted((name for name in gain if gain[name] >= SCREENED), key=gain.get, reverse=True)[:FINALISTS]
    chosen = sorted({*promising, *(name for name in advice if name in gain)})
    runs = {name: [first[name]] for name in chosen}
    for _ in range(ROUNDS if chosen else 1):
        order = ["", *chosen]
        random.shuffle(order)
        for name in order:
            (runs[name] if name else bases).append(Run(start(fresh[name] if name else environment)))
    for name, value in gain.items():
        result[name] = {"gain": round(value, 3), "faults": first[name].faults, "rounds": 1}
    for name, some in runs.items():
        ratios = [one.cpu / max(two.cpu, 1e-3) for one, two in zip(bases, some)]
        result[name] = {"gain": round(statistics.median(ratios), 3), "low": round(sorted(ratios)[1], 3),
                        "faults": int(statistics.median(run.faults for run in some)), "rounds": len(some),
                        "peak_kib": int(statistics.median(run.peak for run in some))}
    for name, run in first.items():
        if not run.ok:
            result[name] = {"fails": True}
    for name, arm in result.items():
        arm["sets"] = sets[name]
    if known:
        return {**known, "arms": result}
    return {"cpu": round(statistics.median(run.cpu for run in bases), 3),
            "system": round(statistics.median(run.system for run in bases), 3),
            "faults": int(statistics.median(run.faults for run in bases)),
            "peak_kib": int(statistics.median(run.peak for run in bases)), "arms": result}


def helps(arm):
    """Whether a setting made the program faster beyond doubt."""
    return arm.get("gain", 0) >= GAIN and arm.get("low", 0) >= SURELY


def best(truth):
    """The setting that gains most, or none."""
    good = {name: arm for name, arm in truth["arms"].items() if helps(arm)}
    return max(good, key=lambda name: good[name]["gain"], default=None)
