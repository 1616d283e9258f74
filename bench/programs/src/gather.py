"""Reads a large array at random positions: nearly every read misses the TLB with base pages."""
import numpy

values = numpy.ones(60_000_000)
places = numpy.random.default_rng(1).integers(0, values.size, 3_000_000)
total = 0.0
for _ in range(12):
    total += values[places].sum()
    places = (places * 31 + 7) % values.size
print(total)
