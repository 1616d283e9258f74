#!/usr/bin/env python3
"""Builds the call trees of function_graph text with a regular expression, as one would by hand.

Usage: function_graph.py TRACE.txt [SEQUENCES.txt]
Writes the calls of each tree, one tree per line, if requested. Prints bytes, complete calls at the
top level, all calls, and MB/s. It reads only the kernel's own text with time, CPU, task and
duration columns, and removes nothing from the trees.
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


def names(node):
    """The functions of a tree in the order of their calls."""
    found, open_nodes = [], [node]
    while open_nodes:
        node = open_nodes.pop()
        found.append(node[0].split(" ", 1)[0])
        open_nodes.extend(reversed(node[2]))
    return found


def main():
    path = sys.argv[1]
    if len(sys.argv) > 2:
        with open(path, encoding="utf-8", errors="replace") as lines:
            with open(sys.argv[2], "w", encoding="utf-8") as out:
                out.writelines(" ".join(names(root)) + "\n" for root in trees(lines))
        return
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
