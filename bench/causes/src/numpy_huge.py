"""Temporaries of 64 MB in numpy, which asks for huge pages for each: zeroing them is half of it."""
import sys
import numpy

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
a = numpy.ones(8_000_000)
b = numpy.ones(8_000_000)
for _ in range(rounds):
    c = a + b
    d = c * a
print(d[0])
