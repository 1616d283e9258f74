"""Temporaries of 64 MB in numpy, which requests huge pages for each: half of the time goes into
zeroing them."""
import sys
import numpy

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
a = numpy.ones(8_000_000)
b = numpy.ones(8_000_000)
for _ in range(rounds):
    c = a + b
    d = c * a
print(d[0])
