#!/usr/bin/env python3
"""PrefixSpan-py (pip install prefixspan) on a sequence file.

Usage: prefixspan_py.py SEQUENCES MIN_SUPPORT MAX_LENGTH
"""
import sys
import time

from prefixspan import PrefixSpan


def main():
    path, min_support, max_length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with open(path, encoding="utf-8") as lines:
        sequences = [line.split() for line in lines if line.strip()]
    miner = PrefixSpan(sequences)
    miner.maxlen = max_length
    start = time.process_time()
    found = miner.frequent(min_support)
    seconds = time.process_time() - start
    total = sum(support for support, _ in found)
    print(f"{len(found)} patterns, supports add up to {total}, {seconds:.3f} s of CPU time")


if __name__ == "__main__":
    main()
