"""Compares the Parquet tables of a folder with the JSON next to them, using DuckDB."""

import json
import pathlib
import sys

import duckdb

work = pathlib.Path(sys.argv[1])


def one(query):
    return duckdb.execute(query).fetchone()


for trace in ["redis", "tpcc", "contend"]:
    findings = json.loads((work / f"{trace}.json").read_text())["evidence"]["fault_paths"]
    faults, paths, functions, histograms = (
        f"'{work / trace / table}.parquet'" for table in ["faults", "paths", "functions", "histograms"]
    )
    classes = {found["class"]: found["faults"] for found in findings["classes"]}
    assert dict(duckdb.execute(f"select class, count(*) from {faults} group by class").fetchall()) == classes
    total, own, interrupts, away = one(
        f"select sum(total_ns), sum(self_ns), sum(interrupts_ns), sum(runnable_ns + blocked_ns + off_cpu_ns) from {faults}"
    )
    split = findings["split"]
    assert own == split["self_ns"]
    assert interrupts == split["interrupts_ns"]
    assert away == split["runnable_ns"] + split["blocked_ns"] + split["off_cpu_ns"]
    assert total >= split["self_ns"] + split["children_ns"]
    # Every fault names a call tree, and trees count their faults.
    assert one(f"select count(*) from {faults} anti join {paths} using (path_id)") == (0,)
    mismatched = f"select count(*) from (select path_id, count(*) n from {faults} group by 1) join {paths} using (path_id) where n != faults"
    assert one(mismatched) == (0,)
    # Means agree within the width of a bucket.
    raw, corrected = one(f"select avg(on_cpu_ns), avg(corrected_on_cpu_ns) from {faults}")
    assert abs(raw - findings["latency"]["raw"]["mean_ns"]) < 1, (raw, findings["latency"]["raw"]["mean_ns"])
    assert abs(corrected / findings["latency"]["corrected"]["mean_ns"] - 1) < 0.02
    # Distributions hold every fault once.
    for times in ["raw", "corrected"]:
        counted = one(f"select sum(faults) from {histograms} where layer = 'fault' and times = '{times}'")
        assert counted == (findings["faults"],), (times, counted)
    own_times = one(f"select sum(self_ns) from {functions}")[0]
    left_out = findings["call_map"]["self_ns_left_out"]
    on_cpu = one(f"select sum(on_cpu_ns) from {faults}")[0]
    assert abs(own_times + left_out - on_cpu) / on_cpu < 0.01, (own_times, on_cpu)
    print(f"{trace}: {findings['faults']} faults agree")

rows, pss = one(f"select count(*), count(pss_bytes) from '{work / 'watch.parquet'}'")
assert rows >= 2 and pss <= rows
print(f"watch: {rows} rows")
