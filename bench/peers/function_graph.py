#!/usr/bin/env python3
"""Builds the call trees of function_graph text with a regular expression, as one would by hand.

Usage: function_graph.py TRACE.txt
Prints bytes, complete calls at the top level, all calls, and MB/s. It reads the kernel's own text
with time, CPU, task and duration columns only, and takes nothing out of the trees.
"""
import re
import sys
import time

LINE = re.compile(
    r"^ *(\d+\.\d+) \|\s+(\d+)\) +(.+)-(\d+) +\| [ $@*#!+] *([\d.]+ us)? *\|  ( *)(.*)$"
)


def trees(lines):
    """Yields the root of each complete tree: [name, duration, children]."""
    stacks = {}
    for line in lines:
        match = LINE.match(line)
        if not match:
            continue
        _, _, _, pid, duration, _, text = match.groups()
        stack = stacks.setdefault(pid, [])
        if text.startswith("}"):
            if not stack:
                continue
            node = stack.pop()
            node[1] = float(duration[:-3]) if duration else 0.0
        elif text.endswith("{"):
            stack.append([text.split("(", 1)[0], 0.0, []])
            continue
        elif text.endswith(";"):
            node = [text.split("(", 1)[0], float(duration[:-3]) if duration else 0.0, []]
        else:
            continue
        if stack:
            stack[-1][2].append(node)
        else:
            yield node


def count(node):
    """Calls in a tree."""
    total, open_nodes = 0, [node]
    while open_nodes:
        node = open_nodes.pop()
        total += 1
        open_nodes.extend(node[2])
    return total


def main():
    path = sys.argv[1]
    start = time.process_time()
    roots = calls = 0
    with open(path, encoding="utf-8", errors="replace") as lines:
        for root in trees(lines):
            roots += 1
            calls += count(root)
        size = lines.buffer.tell()
    rate = size / 1e6 / (time.process_time() - start)
    print(f"{size} bytes, {roots} roots, {calls} calls, {rate:.1f} MB/s of CPU time")


if __name__ == "__main__":
    main()
