import sys

library, what = sys.argv[1:]
total = 0
kept = []


def numpy(size):
    import numpy
    return lambda: numpy.ones(size) * 2.0


def pandas(size):
    import pandas
    frame = pandas.DataFrame({"a": range(size)})
    return lambda: frame.assign(b=frame["a"] * 2)


def polars(size):
    import polars
    frame = polars.select(a=polars.int_range(size))
    return lambda: frame.with_columns(b=polars.col("a") * 2, c=polars.col("a") + 1)


def pyarrow(size):
    import pyarrow
    from pyarrow import compute
    numbers = pyarrow.array(range(size))
    return lambda: compute.multiply(numbers, 2)


def duckdb(size):
    import duckdb
    connection = duckdb.connect(":memory:", config={"threads": 2})
    connection.execute(f"create table numbers as select range i, hash(range) h from range({size})")
    return lambda: connection.execute("select h % 200000 k, sum(i) from numbers group by k").fetchone()


make = globals()[library]
if what == "churn":
    step = make(1_500_000)
    for _ in range(40):
        step()
elif what == "touch":
    step = make(200_000)
    for _ in range(100):
        kept.append(step())
else:
    make(1000)()
    table = list(range(1000))
    for i in range(3_000_000):
        total += table[i % 1000]
print(total + len(kept))
