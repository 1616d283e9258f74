"""DuckDB: groups 30 million rows."""
import duckdb

duckdb.sql("SET threads = 2")
print(duckdb.sql("SELECT count(*), max(s) FROM (SELECT range % 5000 AS k, sum(range * 7 % 1000) AS s FROM range(30000000) GROUP BY k)").fetchall())
