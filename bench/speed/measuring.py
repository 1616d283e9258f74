"""CPU seconds, elapsed seconds and peak memory of whole processes that take turns."""
import hashlib
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

# Runs a command and prints its exit code, CPU seconds, elapsed seconds and peak KiB. A small process
# of its own, because the peak of a child counts what its parent had in memory when it was started.
MEASURE = """
import os, sys, time
begin = time.monotonic()
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ, file_actions=[
    (os.POSIX_SPAWN_OPEN, 1, sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
    (os.POSIX_SPAWN_OPEN, 2, sys.argv[1] + ".err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)])
_, status, usage = os.wait4(child, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, time.monotonic() - begin,
      usage.ru_maxrss)
"""
# A command that takes longer than this many CPU seconds runs once.
ONCE = 10


class Cost(NamedTuple):
    """What one run of a command took."""
    cpu: float
    elapsed: float
    peak: float  # MiB


class Failed(Exception):
    """A command that ended badly."""


def measured(command, out, cpus="0"):
    """The cost of a command on these CPUs; what it prints goes to the file `out`."""
    words = ["taskset", "-c", cpus, sys.executable, "-S", "-c", MEASURE, out, *command]
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, check=True, text=True)
    code, *figures = done.stdout.split()
    if code != "0":
        with open(f"{out}.err", errors="replace") as told:
            raise Failed(f"{' '.join(map(str, command))}: exit {code}\n{told.read()[-500:]}")
    cpu, elapsed, peak = map(float, figures)
    return Cost(cpu, elapsed, peak / 1024)


def in_turn(arms, rounds):
    """The costs of each round by arm, a function that returns one. All run once before, so that files
    are in the page cache; those that take long run only then."""
    found = {name: [] for name in arms}
    for turn in range(rounds + 1):
        for name, arm in arms.items():
            if turn == 0 or found[name][0].cpu < ONCE:
                found[name].append(arm())
    return {name: costs[1:] or costs for name, costs in found.items()}


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def spread(values, form):
    """Median, and the least and the largest where they differ."""
    middle, least, most = (f"{value:{form}}" for value in (statistics.median(values), min(values), max(values)))
    return middle if least == most else f"{middle} [{least}, {most}]"
