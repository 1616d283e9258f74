#!/usr/bin/env python3
"""Texts of perf script in the test folders of FlameGraph and inferno: every one opens, and yields
the stacks expected there.

  bench/peers/collapse.py FLAMEGRAPH/test INFERNO/tests/data/collapse-perf [--binary PATH]

Compares the stacks, without the marks for kinds of code, and their counts if a text has no periods,
since the peers count samples and pagewise adds up what they stand for. stackcollapse-perf.pl drops
the last sample of a text without a blank line at its end; inferno and pagewise do not: if the whole
text gives different stacks, it is read again without that sample.
"""

import argparse
import re
import subprocess
import sys
import tempfile
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
            parts = ("[unknown]" if part.startswith("[") or not part.strip() else part for part in stack.split(";"))
            stack = ";".join(parts)
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


def without_last_sample(text):
    """The text that stackcollapse-perf.pl reads: None where it reads all of it."""
    samples, gap, _ = text.rstrip("\n").rpartition("\n\n")
    return samples + "\n\n" if gap and not text.endswith("\n\n") else None


def exported(binary, path):
    command = [binary, "report", str(path), "--export", "folded"]
    return subprocess.run(command, capture_output=True, text=True)


def judge(binary, path):
    """What came of one input: a word, and whether that is right."""
    done = exported(binary, path)
    if path.stem in INPUTS_WITHOUT_SAMPLES:
        return ("refused: it holds no sample", done.returncode != 0)
    if done.returncode != 0:
        return (f"NOT OPENED: {done.stderr.strip()[:120]}", False)
    expected = results_of(path)
    if not expected:
        return ("opened; nothing to compare with", True)
    theirs = expected.read_text()
    tries = [(done, "")]
    cut = without_last_sample(path.read_text(errors="replace"))
    if cut:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(cut)
            file.flush()
            tries.append((exported(binary, Path(file.name)), "; without the last sample"))
    for compare in (with_counts, without_counts):
        for one, how in tries:
            if found := compare(one, theirs):
                return (found[0] + how, found[1])
    ours, theirs = (folded(text, False) for text in (done.stdout, theirs))
    only = [sorted(set(a) - set(b))[:2] for a, b in ((ours, theirs), (theirs, ours))]
    equal = len(set(ours) & set(theirs))
    return (f"DIFFERS: {equal} of {len(theirs)} are equal; here alone {only[0]}, there {only[1]}", None)


WAYS = [("", False), (", but for how frames without a name are called", True)]


def with_counts(done, expected):
    """How an export is equal to what is expected, and that it is right; None where it differs."""
    for what, unknown in WAYS:
        ours, theirs = (folded(text, unknown) for text in (done.stdout, expected))
        if ours == theirs:
            return (f"{len(ours)} stacks and their counts are equal{what}", True)
    return None


def without_counts(done, expected):
    """The same where the text has periods."""
    for what, unknown in WAYS:
        ours, theirs = (folded(text, unknown) for text in (done.stdout, expected))
        if set(ours) == set(theirs):
            right = "samples" not in done.stderr
            return (f"{len(ours)} stacks are equal; weights are periods, not samples{what}", right)
    return None


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
