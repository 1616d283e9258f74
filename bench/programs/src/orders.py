"""pandas: reads a table, groups it, joins it."""
import io

import numpy
import pandas

random = numpy.random.default_rng(1)
text = pandas.DataFrame({"city": random.integers(0, 500, 200_000), "price": random.random(200_000).round(4)}).to_csv(index=False)
orders = pandas.read_csv(io.StringIO(text))
means = orders.groupby("city").price.agg(["mean", "max"])
joined = orders.join(means, on="city")
print((joined.price / joined["max"]).sum())
