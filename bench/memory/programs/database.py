"""SQLite in memory: rows inserted, an index made, three quarters deleted."""
import ctypes
import sqlite3

base = sqlite3.connect(":memory:")
base.execute("create table t (id integer primary key, name text, body blob)")
rows = ((number, f"row {number}", bytes(number % 900)) for number in range(100_000))
base.executemany("insert into t values (?, ?, ?)", rows)
base.execute("create index by_name on t (name)")
base.execute("delete from t where id % 4 != 0")
base.commit()
base.execute("pragma shrink_memory")
ctypes.CDLL(None).pagewise_truth()
