"""Arrays of 100 MB together, times the argument: sorted, transposed, multiplied, permuted, reduced. Prints digests."""
import hashlib
import math
import sys

import numpy as np


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array)).hexdigest()[:16]


TIMES = float(sys.argv[1])
random = np.random.default_rng(7)
values = random.integers(0, 1 << 62, int(2_140_000 * TIMES), dtype=np.int64)
print("values", digest(values))
order = np.argsort(values, kind="stable")
print("sorted", bool(np.all(np.diff(values[order]) >= 0)), digest(order))
back = np.empty_like(order)
back[order] = np.arange(order.size)
print("inverse", bool(np.array_equal(values[order][back], values)))
side = int(1200 * math.sqrt(TIMES))
matrix = values[: side * side].reshape(side, side)
turned = matrix.T.copy()
print("transposed", digest(turned), bool(np.array_equal(turned.T, matrix)))
small = (matrix[:, :200] % 1000).astype(np.int64)
print("product", digest(small @ small.T[:, :300]))
print("histogram", np.bincount(values % 16).tolist())
print("running", digest(np.cumsum(values % 1000)[::1000]))
