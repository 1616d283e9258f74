"""Checks our exports of a profile with the readers of their formats, as far as tests/exports/run has them."""

import json
import pathlib
import shutil
import subprocess
import sys

import duckdb

work = pathlib.Path(sys.argv[1])
folded = [line.rpartition(" ") for line in (work / "profile.folded").read_text().splitlines()]
total = sum(int(weight) for _, _, weight in folded)

for table in ["profile.parquet", "profile.csv"]:
    first = duckdb.execute(f"select event from '{work / table}' limit 1").fetchone()[0]
    weight, samples, stacks = duckdb.execute(
        f"select sum(weight), count(*), count(distinct stack) from '{work / table}' where event = '{first}'"
    ).fetchone()
    assert weight == total, (table, weight, total)
    print(f"{table}: {samples} samples, {stacks} stacks, the weight of the folded stacks")

speedscope = json.loads((work / "profile.speedscope.json").read_text())
frames = len(speedscope["shared"]["frames"])
for profile in speedscope["profiles"]:
    assert len(profile["samples"]) == len(profile["weights"])
    assert sum(profile["weights"]) == profile["endValue"]
    assert all(0 <= frame < frames for stack in profile["samples"] for frame in stack)
first = speedscope["profiles"][0]["name"].rpartition(" · ")[2]
assert sum(p["endValue"] for p in speedscope["profiles"] if p["name"].endswith(f" · {first}")) == total
schema = work / "node_modules/speedscope/dist/release/file-format-schema.json"
if schema.exists():
    import jsonschema

    jsonschema.validate(speedscope, json.loads(schema.read_text()))
    print("speedscope: valid by its own schema")

firefox = json.loads((work / "profile.firefox.json").read_text())
for thread in firefox["threads"]:
    samples = thread["samples"]
    stacks = thread["stackTable"]["length"]
    assert all(stack is None or 0 <= stack < stacks for stack in samples["stack"])
print(f"firefox: {sum(t['samples']['length'] for t in firefox['threads'])} samples in order")

if shutil.which("go"):
    pprof = subprocess.check_output(["go", "tool", "pprof", "-raw", work / "profile.pb.gz"], text=True)
    lines = pprof.split("Samples:\n")[1].split("Locations\n")[0].splitlines()
    weights = [line.split(":")[0].split() for line in lines[1:] if ":" in line and line.split(":")[0].strip()[:1].isdigit()]
    assert sum(int(values[0]) for values in weights) == total, pprof[:500]
    print(f"pprof: {len(weights)} stacks with the weight of the folded ones")

decoder = work / "decoder"
if decoder.exists():
    otlp = json.loads(subprocess.check_output([decoder, "otlp", work / "profile.otlp"]))
    assert otlp["Totals"][0] == total, (otlp["Totals"], total)
    # Our folded stacks begin with the thread; a stack of OpenTelemetry has frames alone.
    by_stack = {}
    for stack, _, weight in folded:
        frames = stack.partition(";")[2]
        by_stack[frames] = by_stack.get(frames, 0) + int(weight)
    assert sorted(otlp["Stacks"][0].values()) == sorted(by_stack.values()), "other weights of stacks"
    kinds = otlp["Attributes"]
    assert kinds["profile.frame.type"] in ("kernel", "native"), kinds
    assert kinds["os.type"] == "linux" and int(kinds["thread.id"]) > 0 and kinds["thread.name"], kinds
    print(f"otlp: {len(by_stack)} stacks with the weights of the folded ones, by the Collector's data model")
