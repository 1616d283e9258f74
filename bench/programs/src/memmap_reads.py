"""Reads a mapped file of numbers at random positions: `memmap_reads.py FILE COUNT`."""
import sys

import numpy

values = numpy.memmap(sys.argv[1], dtype=numpy.int64, mode="r")
places = numpy.random.default_rng(1).integers(0, values.size, int(sys.argv[2]))
total = 0
for part in numpy.array_split(places, 50):
    total += int(values[part].sum())
print(total)
