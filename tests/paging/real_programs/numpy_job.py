"""Arrays of 80 MB together: sorted, transposed, multiplied, permuted, reduced. Prints digests."""
import hashlib

import numpy as np


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array)).hexdigest()[:16]


random = np.random.default_rng(7)
values = random.integers(0, 1 << 62, 1_600_000, dtype=np.int64)
print("values", digest(values))
order = np.argsort(values, kind="stable")
print("sorted", bool(np.all(np.diff(values[order]) >= 0)), digest(order))
back = np.empty_like(order)
back[order] = np.arange(order.size)
print("inverse", bool(np.array_equal(values[order][back], values)))
matrix = values[: 1200 * 1200].reshape(1200, 1200)
turned = matrix.T.copy()
print("transposed", digest(turned), bool(np.array_equal(turned.T, matrix)))
small = (matrix[:, :200] % 1000).astype(np.int64)
print("product", digest(small @ small.T[:, :300]))
print("histogram", np.bincount(values % 16).tolist())
print("running", digest(np.cumsum(values % 1000)[::1000]))
