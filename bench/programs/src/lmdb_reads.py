"""A database of LMDB, which maps its file: `lmdb_reads.py fill FOLDER` writes 360 MB, `… FOLDER COUNT` looks up."""
import os
import random
import sys

import lmdb

ROWS = 180_000


def fill(folder):
    with lmdb.open(folder, map_size=1 << 30).begin(write=True) as rows:
        for row in range(ROWS):
            rows.put(b"%08d" % row, os.urandom(500) * 2)


def look_up(folder, count):
    place = random.Random(1)
    with lmdb.open(folder, readonly=True, lock=False).begin() as rows:
        return sum(rows.get(b"%08d" % place.randrange(ROWS))[9] for _ in range(count))


if sys.argv[1] == "fill":
    fill(sys.argv[2])
else:
    print(look_up(sys.argv[1], int(sys.argv[2])))
