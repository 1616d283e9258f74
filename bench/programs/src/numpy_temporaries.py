"""Chained numpy arithmetic: each operator creates a 64 MB temporary and frees it one step later."""
import sys

import numpy as np

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 12
x = np.linspace(0.0, 1.0, 8_000_000)
y = np.ones_like(x)
for _ in range(steps):
    y = (x * 2.0 + y * 0.5) - (y * y) * 0.25
print(f"{y.mean():.6f}")
