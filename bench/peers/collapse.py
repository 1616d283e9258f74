#!/usr/bin/env python3
"""Texts of perf script in the test folders of FlameGraph and inferno: every one opens, and gives
the stacks that are expected there.

  bench/peers/collapse.py FLAMEGRAPH/test INFERNO/tests/data/collapse-perf [--binary PATH]

Compared are the stacks, without the marks for kinds of code; and their counts where a text has no
periods, for the peers count samples and pagewise adds up what they stand for. stackcollapse-perf.pl
drops the last sample of a text without a blank line at its end; inferno and pagewise don't.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

MARKS = re.compile(r"_\[[kji]\](?=;| \d+$|$)")
# There is nothing in it.
INPUTS_WITHOUT_SAMPLES = {"no-events"}


def folded(text, unknown):
    """Stacks and their counts; with `unknown`, all frames without a name are called alike."""
    stacks = Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        stack = MARKS.sub("", stack)
        if unknown:
            stack = ";".join("[unknown]" if part.startswith("[") else part for part in stack.split(";"))
        if stack:
            stacks[stack] += int(float(count))
    return stacks


def results_of(path):
    """Expected results, the plainest variant first."""
    folder = path.parent / "results"
    for variant in ["-collapsed", "-collapsed-all", "-collapsed-kernel", "-collapsed-jit"]:
        found = folder / f"{path.stem}{variant}.txt"
        if found.exists():
            return found
    return None


def judge(binary, path):
    """What came of one input: a word, and whether that is right."""
    command = [binary, "report", str(path), "--export", "folded"]
    done = subprocess.run(command, capture_output=True, text=True)
    if path.stem in INPUTS_WITHOUT_SAMPLES:
        return ("refused: it holds no sample", done.returncode != 0)
    if done.returncode != 0:
        return (f"NOT OPENED: {done.stderr.strip()[:120]}", False)
    expected = results_of(path)
    if not expected:
        return ("opened; nothing to compare with", True)
    texts = done.stdout, expected.read_text()
    for what, unknown in [("", False), (", but for how frames without a name are called", True)]:
        ours, theirs = (folded(text, unknown) for text in texts)
        more = sum((ours - theirs).values()), sum((theirs - ours).values())
        if more == (0, 0):
            return (f"{len(ours)} stacks and their counts are equal{what}", True)
        if more == (1, 0):
            return (f"{len(theirs)} stacks are equal, and the last sample is here too{what}", True)
        if set(ours) == set(theirs):
            right = "samples" not in done.stderr
            return (f"{len(ours)} stacks are equal; weights are periods, not samples{what}", right)
    only = [sorted(set(a) - set(b))[:2] for a, b in ((ours, theirs), (theirs, ours))]
    equal = len(set(ours) & set(theirs))
    return (f"DIFFERS: {equal} of {len(theirs)} are equal; here alone {only[0]}, there {only[1]}", None)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("folders", nargs="+", type=Path)
    arguments.add_argument("--binary", default="target/release/pagewise")
    chosen = arguments.parse_args()
    wrong = 0
    for folder in chosen.folders:
        for path in sorted(folder.glob("*.txt")):
            told, right = judge(chosen.binary, path)
            wrong += right is False
            print(f"{path.name}: {told[:300]}")
    print(f"{wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
