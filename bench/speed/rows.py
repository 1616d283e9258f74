"""The rows of the table: each measures one kind of work and returns its figures."""
import importlib.machinery
import importlib.util
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import tools
from measuring import Cost, Failed, digest, in_turn, measured, spread
from tools import Missing, ROOT

# Faults that are enough for PrefixSpan-py to take a second or two, and how often a pattern must occur.
MINED = [(200, "20%"), (1000, "20%"), (4000, "20%")]
START_ROUNDS = 5  # times the rounds of other rows: one takes a few milliseconds


@dataclass
class Figure:
    """One figure of this build, of the build before and of a peer, round by round."""
    work: str
    unit: str
    form: str
    values: dict  # "now", "before" and the peer's name: values of the rounds
    peer: str = None
    least: float = None  # the goal: at least, or
    most: float = None   # at most
    times: float = None  # and how many times the peer's speed at least
    is_paired: bool = True  # round by round, so that ratios have a meaning

    def in_unit(self, text):
        return f"×{text}" if self.unit == "×" else f"{text} {self.unit}"

    def median(self, arm):
        return statistics.median(self.values[arm])

    def ratio(self, arm):
        """How many times this build is as fast as another, round by round."""
        now, others = self.values["now"], self.values[arm]
        if len(others) == 1:
            others = others * len(now)
        is_cost = self.most is not None or self.unit in ("min", "s", "ms", "MiB", "MB")
        return [b / a if is_cost else a / b for a, b in zip(now, others)]

    def met(self):
        """Whether each goal is met, in words."""
        now, told = self.median("now"), []
        for goal, sign in ((self.least, "≥"), (self.most, "≤")):
            if goal is not None:
                right = now >= goal if sign == "≥" else now <= goal
                told.append(f"{sign} {self.in_unit(f'{goal:g}')}: {'met' if right else 'missed'}")
        if self.times and self.peer in self.values:
            right = statistics.median(self.ratio(self.peer)) >= self.times
            told.append(f"×{self.times:g}: {'met' if right else 'missed'}")
        return ", ".join(told)

    def cells(self, with_before):
        """Columns of the table."""
        before = peer = ""
        if "before" in self.values:
            before = spread(self.values["before"], self.form)
            before += f", ×{spread(self.ratio('before'), '.2f')}" if self.is_paired else ""
        if self.peer in self.values:
            peer = f"{self.peer}: {self.median(self.peer):{self.form}}, ×{spread(self.ratio(self.peer), '.1f')}"
        columns = [self.work, self.in_unit(spread(self.values["now"], self.form)), before, peer, self.met()]
        return columns if with_before else columns[:2] + columns[3:]


class Bench:
    """Builds, inputs and rounds; what went wrong on the way."""

    def __init__(self, builds, inputs, rounds, folder):
        self.builds, self.inputs, self.rounds, self.folder = builds, inputs, rounds, folder
        self.since = None
        self.problems = []

    def out(self, name):
        return self.folder / f"{name}.out"

    def peer(self, install):
        """A peer's program; None and a problem if it can't be had."""
        try:
            return install(ROOT / "target/bench-peers")
        except Missing as missing:
            self.problems.append(f"missing: {missing}")
            return None

    def of_builds(self, words, cpus="0"):
        """Arms that run pagewise with these words, by build."""
        def arm(name, build):
            return lambda: measured([build, *words], self.out(name), cpus)
        return {name: arm(name, build) for name, build in self.builds.items()}

    def compare(self, what, names):
        """Notes outputs that should be the same and are not."""
        if len({digest(self.out(name)) for name in names}) > 1:
            self.problems.append(f"DIFFERENT output, {what}: {', '.join(names)}")


def column(found, name, what):
    return [getattr(cost, what) for cost in found[name]]


def rates(found, amount):
    """What is done in a second of CPU time, for each arm."""
    return {name: [amount / cost.cpu for cost in costs] for name, costs in found.items()}


def seconds(found):
    return {name: column(found, name, "cpu") for name in found}


def peaks(bench, found):
    return {name: column(found, name, "peak") for name in bench.builds}


def traces(bench):
    """function_graph text to JSON, on one core and on two."""
    text = bench.inputs.varied()
    megabytes = text.stat().st_size / 1e6
    words = ["report", "--json", text]
    arms = bench.of_builds(words)
    for name, build in bench.builds.items():
        two = f"{name} on two"
        arms[two] = partial(measured, [build, *words], bench.out(two), "0,1")
    python = [sys.executable, ROOT / "bench/peers/function_graph.py", text]
    peer = "regular expressions in Python, trees alone"
    arms[peer] = partial(measured, python, bench.out("python"))
    found = in_turn(arms, bench.rounds)
    bench.compare("trace", [name for name in arms if name != peer])
    speed = {name: rate for name, rate in rates(found, megabytes).items() if "on two" not in name}
    elapsed = {name: column(found, name, "elapsed") for name in found}
    gain = {name: [one / two for one, two in zip(elapsed[name], elapsed[f"{name} on two"])] for name in bench.builds}
    size = {name: [bench.out(name).stat().st_size / 1e6] for name in bench.builds}
    both = {name: column(found, f"{name} on two", "peak") for name in bench.builds}
    title = f"function_graph text, {megabytes:.0f} MB, `report --json`"
    return [
        Figure(f"{title}, one core", "MB/s", ".0f", speed, peer, least=700),
        Figure("the same on two cores, elapsed time", "×", ".2f", gain, least=1.8),
        Figure("peak memory on one core", "MiB", ".0f", peaks(bench, found), most=64),
        Figure("peak memory on two cores", "MiB", ".0f", both, most=64),
        Figure("size of the JSON", "MB", ".2f", size, most=2),
    ]


def text(bench):
    """perf script's text to folded stacks."""
    collapse, figures = bench.peer(tools.inferno), []
    for name, recording in recordings(bench):
        source = bench.inputs.text(recording)
        megabytes = source.stat().st_size / 1e6
        arms = bench.of_builds(["report", "--export", "folded", source])
        if collapse:
            arms["inferno"] = partial(measured, [collapse, "-q", "-n", "1", source], bench.out("inferno"))
        found = in_turn(arms, bench.rounds)
        bench.compare(source.name, list(bench.builds))
        with open(bench.out("now"), "rb") as lines:
            stacks = sum(1 for _ in lines)
        title = f"`perf script` text of {name}, {megabytes:.0f} MB, {stacks:,} stacks, folded"
        least, times = (1200, 6) if name == "compilers" else (None, None)
        figures.append(Figure(title, "MB/s", ".0f", rates(found, megabytes), "inferno", least=least, times=times))
        figures.append(Figure("peak memory", "MiB", ".0f", peaks(bench, found)))
    return figures


def data(bench):
    """perf.data to folded stacks with names."""
    figures = []
    for name, recording in recordings(bench):
        samples = bench.inputs.text(recording).read_bytes().count(b"\n\n") / 1e6
        arms = bench.of_builds(["report", "--export", "folded", recording])
        script = ["perf", "script", "--no-inline", "-i", recording]
        arms["perf script"] = partial(measured, script, bench.out("perf"))
        found = in_turn(arms, bench.rounds)
        bench.compare(recording.name, list(bench.builds))
        title = f"perf.data of {name}, {samples:.2f} M samples, with names, folded"
        speed, times, most = (1.2, 10, 100) if name == "compilers" else (None, None, None)
        figures.append(Figure(title, "M/s", ".2f", rates(found, samples), "perf script", least=speed, times=times))
        figures.append(Figure("peak memory", "MiB", ".0f", peaks(bench, found), most=most))
    return figures


def recordings(bench):
    """The recordings whose inputs are there, by name."""
    found = []
    for name in ("compilers", "database", "stress"):
        try:
            found.append((name, getattr(bench.inputs, name)()))
        except Missing as missing:
            bench.problems.append(f"missing: {missing}")
    return found


def page(bench):
    """perf.data of many samples to a page."""
    recording = bench.inputs.many()
    pages = {name: bench.folder / f"{name}.html" for name in bench.builds}
    arms = {name: partial(measured, [build, "report", recording, "-o", pages[name]], bench.out(name))
            for name, build in bench.builds.items()}
    found = in_turn(arms, bench.rounds)
    if len({digest(path) for path in pages.values()}) > 1:
        bench.problems.append("DIFFERENT output, page: now, before")
    samples = counted(recording) / 1e6
    title = f"perf.data of stress-ng, {samples:.1f} M samples, to a page"
    return [
        Figure(f"{title}, scaled to 14 M", "s", ".2f", {name: [cost.cpu * 14 / samples for cost in costs]
                                                  for name, costs in found.items()}, most=5),
        Figure("peak memory, scaled to 14 M", "MiB", ".0f", {name: [peak * 14 / samples for peak in column]
                                                      for name, column in peaks(bench, found).items()}, most=300),
    ]


def counted(recording):
    """Samples, by perf's own count."""
    stats = subprocess.run(["perf", "report", "--stats", "--stdio", "-i", recording], capture_output=True, text=True)
    return int(re.search(r"SAMPLE events: +(\d+)", stats.stdout)[1])


def mining(bench):
    """Patterns of up to three items, beside PrefixSpan-py."""
    python, figures = bench.peer(tools.prefixspan), []
    one, calls = bench.inputs.redis(), bench.folder / "sequences.txt"
    subprocess.run([sys.executable, ROOT / "bench/peers/function_graph.py", one, calls], check=True)
    lines = calls.read_text().splitlines(keepends=True)
    for count, support in MINED:
        base = bench.folder / f"sequences-{count}.txt"
        base.write_text("".join(spaced(lines, count)))
        figures.append(mined(bench, python, base, count, support))
    return figures


def spaced(lines, count):
    """This many lines, from all parts of a file."""
    return [lines[at * len(lines) // count] for at in range(min(count, len(lines)))]


def mined(bench, python, base, count, support):
    words = ["mine", "--algorithm", "classic", "--min-support", support, "--max-length", "3", base]
    arms, told = bench.of_builds(words), {}
    least = -(-min(count, sum(1 for _ in base.open())) * int(support[:-1]) // 100)

    def peer():
        peer = [python, ROOT / "bench/peers/prefixspan_py.py", base, str(least), "3"]
        measured(peer, bench.out("peer"))
        printed = bench.out("peer").read_text()
        patterns, supports, took = re.search(r"(\d+) patterns.* (\d+), ([\d.]+) s", printed).groups()
        told["PrefixSpan-py"] = int(patterns), int(supports)
        return Cost(float(took), 0, 0)
    if python:
        arms["PrefixSpan-py"] = peer
    found = in_turn(arms, bench.rounds)
    bench.compare(f"mining of {count}", list(bench.builds))
    supports = [int(line.partition("\t")[0]) for line in bench.out("now").read_text().splitlines()]
    if python and told["PrefixSpan-py"] != (len(supports), sum(supports)):
        bench.problems.append(f"DIFFERENT patterns of {count} sequences than PrefixSpan-py's")
    title = f"`mine`, classic, at most 3 items, {count:,} faults of Redis, {len(supports):,} patterns, start included"
    times = seconds(found)
    return Figure(title, "ms", ".1f", {name: [1e3 * second for second in column] for name, column in times.items()},
                  "PrefixSpan-py", times=100)


def tlb(bench):
    """Simulated TLBs: the engine alone. Only this build's: its benchmark is compiled with it."""
    build = ["cargo", "bench", "-q", "--locked", "-p", "pagewise-simulate", "--bench", "tlb"]
    subprocess.run([*build, "--no-run"], cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
    done = subprocess.run(["taskset", "-c", "0", *build], cwd=ROOT, check=True, capture_output=True, text=True)
    goals = {"Golden Cove": 150, "3A4000": 80}
    figures, machine = [], None
    for line in done.stdout.splitlines():
        machine = line.removesuffix(", M accesses/s") if line.endswith(", M accesses/s") else machine
        rate = re.match(r"exact, all workloads and pages: ([\d.]+)", line)
        if not rate:
            continue
        goal = next((goal for name, goal in goals.items() if name in machine), None)
        now = {"now": [float(rate[1])]}
        figures.append(Figure(f"TLBs of {machine}, exact", "M accesses/s", ".1f", now, least=goal))
    return figures


def pipe(bench):
    """Simulated TLBs: a program traced and simulated at once."""
    run = script(ROOT / "bench/tlb/run")
    if run.missing():
        raise Missing(run.missing())
    keys = 100_000
    accesses = {name: run.count(build, keys) / 1e6 for name, build in bench.builds.items()}
    def arm(build):
        _, cpu, elapsed = run.timed(lambda: run.piped(build, keys))
        return Cost(cpu, elapsed, 0)
    found = in_turn({name: partial(arm, build) for name, build in bench.builds.items()}, bench.rounds)
    speed = {name: [accesses[name] / cost.cpu for cost in costs] for name, costs in found.items()}
    title = f"`huge trace --pages` piped into `huge simulate --native`, awk, {accesses['now']:.0f} M accesses"
    return [Figure(title, "M accesses/s", ".1f", speed, least=60)]


def script(path):
    """A script as a module."""
    loader = importlib.machinery.SourceFileLoader(path.parent.name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def doctor(bench):
    """What `doctor` takes: until the program starts, until its answer, and of the program's CPU time."""
    figures = [started(bench), answered(bench)]
    words = [ROOT / "bench/overhead/doctor", "computing", "faults", "calls", "--blocks", str(bench.rounds),
             "--pagewise", bench.builds["now"]]
    if "before" in bench.builds:
        words += ["--before", bench.builds["before"]]
    told = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if told.returncode:
        raise Failed(told.stderr)
    for title, most in (("computing", 1.005), ("faults", 1.02), ("calls", 1.02)):
        part = re.search(rf"^{title}: .*\n((?:  .*\n?)+)", told.stdout, re.M)[1]
        values = {}
        for build, middle, low, high in re.findall(r"^  (\w+) +CPU x([\d.]+) \[([\d.]+), ([\d.]+)\]", part, re.M):
            values["now" if build == "doctor" else build] = [float(low), float(middle), float(high)]
        work = f"`doctor` on {title}, CPU time of the program (interval of 95 %)"
        figures.append(Figure(work, "×", ".3f", values, most=most, is_paired=False))
    return figures


def started(bench):
    program, told = bench.folder / "start", bench.folder / "started"
    subprocess.run(["cc", "-O2", "-o", program, ROOT / "bench/speed/start.c"], check=True)

    def after(*words):
        """Milliseconds until the program starts."""
        begin = time.monotonic_ns()
        subprocess.run([*words, program, told], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return (int(told.read_text()) - begin) / 1e6
    arms = {name: [build, "doctor", "--json", "--quiet", "--no-report", "--"] for name, build in bench.builds.items()}
    peer = "perf record -g of two events"
    arms[peer] = ["perf", "record", "-q", "-g", "-e", "cpu-clock,page-faults", "-o", bench.out("peer"), "--"]
    values = {name: [] for name in arms}
    for _ in range(START_ROUNDS * bench.rounds):
        alone = after()
        for name, words in arms.items():
            values[name].append(after(*words) - alone)
    return Figure("`doctor`, until the program starts, elapsed time", "ms", ".1f", values, peer, most=5)


def answered(bench):
    """What `doctor` adds to a program that does nothing, from start to prompt."""
    def took(*words):
        begin = time.monotonic_ns()
        subprocess.run([*words, "true"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return (time.monotonic_ns() - begin) / 1e6
    values = {name: [] for name in bench.builds}
    for _ in range(START_ROUNDS * bench.rounds):
        alone = took()
        for name, build in bench.builds.items():
            values[name].append(took(build, "doctor", "--json", "--quiet", "--no-report", "--") - alone)
    return Figure("`doctor` on `true`, from start to prompt, elapsed time beyond the program's", "ms", ".0f", values)


def size(bench):
    """The program's bytes."""
    sizes = {name: [build.stat().st_size / 1e6] for name, build in bench.builds.items()}
    return [Figure("binary", "MB", ".1f", sizes, most=8)]


def from_clone(bench, commit, wanted):
    """The cost of a command of README's in a clean clone of a commit."""
    clone = bench.folder / "clone"
    subprocess.run(["git", "clone", "-q", "--shared", "--no-checkout", ROOT, clone], check=True)
    subprocess.run(["git", "-C", clone, "checkout", "-q", "--detach", commit], check=True)
    try:
        command = re.search(wanted, (clone / "README.md").read_text(), re.M)[0]
        words = ["env", "-u", "CARGO_TARGET_DIR", "-C", clone, *shlex.split(command)]
        return measured(words, bench.out("clean"), "0,1")
    finally:
        shutil.rmtree(clone)


def clean(bench):
    """README's two commands in a clean clone: the first answer and all tests, or the first answer in turn with --since."""
    commits = {"now": "HEAD"} | ({"before": bench.since} if bench.since else {})
    answers = {name: [] for name in commits}
    for _ in range(bench.rounds if bench.since else 1):
        for name, commit in commits.items():
            answers[name].append(from_clone(bench, commit, r"^cargo run .*$"))
    first = "clean clone to the first answer (README's command), crates downloaded before"
    minutes = {name: [cost.elapsed / 60 for cost in costs] for name, costs in answers.items()}
    cpu = {name: [cost.cpu / 60 for cost in costs] for name, costs in answers.items()}
    figures = [Figure(first, "min", ".1f", minutes, most=2), Figure("the same, CPU time", "min", ".1f", cpu)]
    if bench.since:
        return figures
    tests = from_clone(bench, "HEAD", r"^cargo test --workspace.*$")
    return figures + [
        Figure("clean clone through all tests (README's command)", "min", ".1f", {"now": [tests.elapsed / 60]}, most=6),
        Figure("the same, CPU time", "min", ".1f", {"now": [tests.cpu / 60]}),
    ]


ROWS = {row.__name__: row for row in (traces, text, data, page, mining, tlb, pipe, doctor, size, clean)}
