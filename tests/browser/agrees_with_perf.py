"""Compares pagewise report's figures for a recording with those of perf report for the same file.

Usage: agrees_with_perf.py RECORD.txt REPORT.json PERF-REPORT.txt PERF-MESSAGES.txt

Each event must have as many samples as pagewise record reports to have written, and the first event
also as many as in pagewise report; each of the ten largest symbols of the first event that perf
names must be among ours, with the same samples (perf's symbols include everything inlined into
them, so ours may be smaller if the program has debug information).
"""

import json
import re
import sys

ours = json.load(open(sys.argv[2]))
ours = ours["evidence"]["run"]["profile"] if ours["kind"] == "run" else ours["evidence"]["profile"]
LARGEST = 10
wrong = []


def plain(name):
    """A name without arguments, clones and hashes, which both write in their own way."""
    name = re.sub(r"\[clone [^]]*\]|::h[0-9a-f]{16}$", "", name)
    name = re.sub(r"\.(isra|constprop|part|cold|llvm)\..*$|\.cold$", "", name)
    return re.sub(r"(?<=\w)\(.*", "", name).replace(" ", "")


events = {}
event = None
for line in open(sys.argv[3]):
    if found := re.match(r"# Samples: \S+ +of event '(.*)'", line):
        event = events.setdefault(found[1], [])
    elif found := re.match(r"\s*[\d.]+%\s*\|\s*(\d+)\s*\|\[(.)\] (.*)", line):
        event.append((int(found[1]), found[2], found[3].strip()))

messages = open(sys.argv[4]).read().strip()
if messages:
    print(f"perf says: {messages}")
if re.search(r"(?i)invalid|corrupt|incompatible|failed|can't parse", messages):
    wrong.append("perf complains about our file")

recorded = {}
for line in open(sys.argv[1]):
    if found := re.match(r"\s+([\d,]+)  (\S+)$", line):
        recorded[found[2]] = int(found[1].replace(",", ""))
for name, rows in events.items():
    theirs = sum(samples for samples, _, _ in rows)
    mine = recorded.get(name, 0)
    print(f"{name}: {mine} samples by pagewise record, {theirs} by perf report")
    if theirs != mine:
        wrong.append(f"{name}: {mine} samples against {theirs}")

first = ours["events"][0]
rows = sorted(events.get(first["name"], []), reverse=True)
theirs = sum(samples for samples, _, _ in rows)
print(f"{first['name']}: {first['samples']} samples by pagewise report")
if not rows or theirs != first["samples"]:
    wrong.append(f"{first['name']}: {theirs} samples by perf report")
whole = first["weight"] + first["idle"]
own = {}
for function in first["functions"]:
    own[plain(function["name"])] = own.get(plain(function["name"]), 0) + function["own"]
held = 0
for samples, kind, symbol in [row for row in rows if not row[2].startswith("0x")][:LARGEST]:
    share = samples / first["samples"]
    mine = own.get(plain(symbol), 0) / whole if whole else 0
    idle = first["idle"] / whole if "idle" in symbol or "halt" in symbol else 0
    # Weights are periods; those of one clock are equal but for the kernel's rounding.
    near = abs(mine - share) <= 0.003 or abs(idle - share) <= 0.003
    print(f"  {100 * share:6.2f} % {100 * (idle or mine):6.2f} %  [{kind}] {symbol[:90]}")
    held += near
    if not near and kind == "k":
        wrong.append(f"{symbol}: {100 * share:.2f} % by perf, {100 * mine:.2f} % by pagewise")
if held < min(LARGEST, len(rows)) * 0.8:
    wrong.append(f"only {held} of the largest symbols agree")
for line in wrong:
    print(f"WRONG {line}")
sys.exit(bool(wrong))
