"""NumPy: temporaries of an expression over arrays of many sizes, a few results kept."""
import ctypes

import numpy

kept = []
for size in list(range(20_000, 400_000, 20_000)) * 3:
    a = numpy.ones(size)
    b = (a * 2 + a / 3) ** 2 - a
    if size % 60_000 == 0:
        kept.append(b)
del a, b
ctypes.CDLL(None).pagewise_truth()
