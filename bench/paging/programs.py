#!/usr/bin/env python3
"""Programs that people run, each with a data set of a given size and its results checked.

Usage: programs.py redis|sqlite|numpy MIB [PREFIX...]

PREFIX is put in front of the program under test; clients run without it. Prints one line of JSON;
exits 1 on a wrong byte. Needs redis-server and redis-benchmark, sqlite3, or numpy.
"""
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time

GROUP = os.environ.get("PAGING_GROUP")
VALUE_BYTES = 1000
NUMPY = """
import json, sys, time
import numpy as np
count = int(sys.argv[1]) * (1 << 20) // 8 // 4 // 1024 * 1024
def block(number):
    return np.random.default_rng(number).standard_normal(1024)
a = np.empty(count)
for number in range(count // 1024):
    a[number * 1024:][:1024] = block(number)
start = time.monotonic()
b = a * 2 + 1                        # temporaries of the array's size
c = np.sort(b.reshape(-1, 4096), 1)  # rows sorted
mean, deviation = c.mean(0), b.std()
d = np.convolve(a[:count], np.ones(9) / 9, "same")
spent = time.monotonic() - start
wrong = 0
for number in range(0, count // 1024, 7):
    x = block(number)
    wrong += not np.array_equal(a[number * 1024:][:1024], x)
    wrong += not np.array_equal(b[number * 1024:][:1024], x * 2 + 1)
for row in range(0, count // 4096, 7):
    wrong += not np.array_equal(np.sort(b[row * 4096:][:4096]), c[row])
print(json.dumps({"figures": {"runs per second": 1 / spent}, "wrong": wrong}))
"""
SQLITE = """
PRAGMA temp_store = MEMORY;
CREATE TABLE rows (id INTEGER PRIMARY KEY, key INTEGER, head BLOB, body BLOB);
INSERT INTO rows WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
    SELECT i, i * 7919 % {rows}, NULL, randomblob(900) FROM n;
CREATE INDEX by_key ON rows (key);
UPDATE rows SET head = substr(body, 1, 8) WHERE key % 3 = 0;
SELECT count(*), sum(length(body)) FROM rows JOIN
    (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
     SELECT i * 104729 % {rows} AS wanted FROM n) ON key = wanted;
SELECT sum(length(body)), sum(head <> substr(body, 1, 8)) FROM rows;
"""


def launch(prefix, words, **more):
    """Starts the program under test, in the memory cgroup that PAGING_GROUP names."""
    join = (lambda: pathlib.Path(GROUP, "tasks").write_text(str(os.getpid()))) if GROUP else None
    return subprocess.Popen([*prefix, *words], preexec_fn=join, text=True, **more)


def value(number):
    return random.Random(number).randbytes(VALUE_BYTES)


def replies(file, count):
    """Bodies of `count` replies; None for those without one."""
    for _ in range(count):
        line = file.readline()
        if line[:1] == b"$" and line != b"$-1\r\n":
            yield file.read(int(line[1:]) + 2)[:-2]
        else:
            yield None


def redis(mib, prefix):
    keys = (mib << 20) // (VALUE_BYTES + 120)
    key = "key:{:012d}".format
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        words = ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder]
        server = launch(prefix, words, stdout=subprocess.DEVNULL)
        for _ in range(200):
            if pathlib.Path(path).exists():
                break
            time.sleep(0.05)
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        file = client.makefile("rwb")

        def pipelined(numbers, words):
            numbers = list(numbers)
            for first in range(0, len(numbers), 500):
                part = numbers[first:first + 500]
                for number in part:
                    pieces = [piece if isinstance(piece, bytes) else piece.encode() for piece in words(number)]
                    file.write(b"*%d\r\n" % len(pieces) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in pieces))
                file.flush()
                yield from zip(part, replies(file, len(part)))

        for _ in pipelined(range(keys), lambda number: ("SET", key(number), value(number))):
            pass
        figures = {}
        for test, requests in (("get", 30000), ("set", 15000)):
            if test == "set":
                # The read-back check comes before the benchmark's own values replace ours.
                got = pipelined(range(0, keys, 3), lambda number: ("GET", key(number)))
                wrong = sum(body != value(number) for number, body in got)
            done = subprocess.run(["redis-benchmark", "-s", path, "-t", test, "-n", str(requests), "-r", str(keys),
                                   "-d", str(VALUE_BYTES), "-c", "8", "--csv"], capture_output=True, text=True,
                                  check=True)
            figures[f"{test} per second"] = float(done.stdout.splitlines()[-1].split(",")[1].strip('"'))
        file.write(b"SHUTDOWN NOSAVE\r\n")
        file.flush()
        server.wait()
    return {"figures": figures, "wrong": wrong}


def sqlite(mib, prefix):
    rows = (mib << 20) // 1060
    start = time.monotonic()
    shell = launch(prefix, ["sqlite3", "-bail", ":memory:"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    output, _ = shell.communicate(SQLITE.format(rows=rows))
    spent = time.monotonic() - start
    lines = output.split()
    right = shell.returncode == 0 and lines == [f"6000|{6000 * 900}", f"{rows * 900}|0"]
    if not right:
        print(f"sqlite3: exit {shell.returncode}, {lines}", file=sys.stderr)
    return {"figures": {"runs per second": 1 / spent}, "wrong": int(not right)}


def numpy(mib, prefix):
    # Debian's interpreter, which has python3-numpy.
    program = launch(prefix, ["/usr/bin/python3", "-c", NUMPY, str(mib)], stdout=subprocess.PIPE)
    output, _ = program.communicate()
    if program.returncode != 0:
        sys.exit(f"numpy: exit {program.returncode}")
    return json.loads(output)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    result = {"redis": redis, "sqlite": sqlite, "numpy": numpy}[sys.argv[1]](int(sys.argv[2]), sys.argv[3:])
    print(json.dumps(result))
    sys.exit(result["wrong"] != 0)
