"""The same in Python, with hashes that differ from run to run: grow.py EXTRA_FAULTS EXTRA_PEAK."""
import mmap
import sys

PAGE = mmap.PAGESIZE


def take(pages):
    held = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for page in range(pages):
        held[page * PAGE] = 1
    return held


def touch_more(pages):
    for _ in range(pages):
        take(1).close()


def hold_more(pages):
    return take(pages) if pages else None


kept = hold_more(int(sys.argv[2]))
touch_more(int(sys.argv[1]))
words = {}
for number in range(40_000):
    words.setdefault(f"word {number % 7_919}", []).append(number)
print(len(sorted(words)))
