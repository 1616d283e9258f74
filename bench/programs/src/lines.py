"""Writes N lines of pseudo-random words to a file: the input of sort, xz and the mapped search."""
import random
import sys

path, count = sys.argv[1], int(sys.argv[2])
rng = random.Random(1)
words = [f"word{rng.randrange(10**6)}" for _ in range(20000)]
with open(path, "w", encoding="ascii") as out:
    for _ in range(count):
        out.write(" ".join(rng.choices(words, k=5)) + "\n")
