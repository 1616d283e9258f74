"""Databases that sort, group and join in memory."""
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import time

from launching import NotInstalled, answer, ended_well, folder, launch, needs, per_second

ROOT = pathlib.Path(__file__).resolve().parents[2]
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
DUCKDB = """
import sys
import duckdb
count = int(sys.argv[1])
db = duckdb.connect()
db.execute("SET threads = 2; SET memory_limit = '8GB'; SET temp_directory = ''; SET enable_progress_bar = false")
db.execute(f"CREATE TABLE t AS SELECT i * 7919 % {count} AS k, i AS v FROM range({count}) r(i)")
print(*db.execute("SELECT sum(k * r)::BIGINT FROM (SELECT k, row_number() OVER (ORDER BY k) AS r FROM t)").fetchone(),
      *db.execute("SELECT count(*), sum(c)::BIGINT FROM (SELECT k, count(*) AS c, max(v) FROM t GROUP BY k)").fetchone())
"""


def sqlite(mib, prefix):
    rows = (mib << 20) // 2200
    start = time.monotonic()
    shell = launch(prefix, [needs("sqlite3"), "-bail", ":memory:"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    output, _ = shell.communicate(SQLITE.format(rows=rows))
    spent = time.monotonic() - start
    ended_well(shell.returncode)
    lines = output.split()
    right = lines == [f"6000|{6000 * 900}", f"{rows * 900}|0"]
    if not right:
        print(f"sqlite3: {lines}", file=sys.stderr)
    return per_second(spent, right)


def ordered(count):
    """The sum over 0, 1, 2 and so on, each times its number from one."""
    return sum(k * (k + 1) for k in range(count))


def duckdb(mib, prefix):
    place = ROOT / "target/bench-peers/python"
    if not (place / "duckdb").exists():
        done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", place, "duckdb==1.*"],
                              capture_output=True)
        if done.returncode:
            raise NotInstalled("pip cannot install duckdb")
    count = (mib << 20) // 100
    return answer(prefix, [sys.executable, "-c", DUCKDB, count], f"{ordered(count)} {count} {count}",
                  env={**os.environ, "PYTHONPATH": str(place)})


def postgres(prefix, rows, query, expected):
    """One query on a table of so many rows, by a server whose data is on disk and whose work is in memory."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
    if not found or not shutil.which("psql"):
        raise NotInstalled("PostgreSQL is not installed")
    programs, user = found[-1], pwd.getpwnam("postgres")
    with folder() as place:
        os.chown(place, user.pw_uid, user.pw_gid)
        data = place / "data"
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": place}
        subprocess.run([programs / "initdb", "-D", data, "-A", "trust", "--no-sync"], check=True, capture_output=True, **as_user)
        settings = ["listen_addresses=", f"unix_socket_directories={place}", "shared_buffers=16MB", "work_mem=4GB",
                    "hash_mem_multiplier=4", "fsync=off", "autovacuum=off", "jit=off", "max_wal_size=64MB",
                    "max_parallel_workers_per_gather=0"]
        words = [programs / "postgres", "-D", data, *(word for setting in settings for word in ("-c", setting))]
        server = launch(prefix, words, user=user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=place)
        ask = ["psql", "-h", place, "-d", "postgres", "-Atc"]
        try:
            for _ in range(400):
                if server.poll() is not None:
                    sys.exit(f"postgres: exit {server.returncode}")
                if subprocess.run([*ask, "SELECT 1"], capture_output=True, **as_user).returncode == 0:
                    break
                time.sleep(0.05)
            make = f"CREATE UNLOGGED TABLE t AS SELECT i * 7919 % {rows} AS k, repeat('x', 40) || i AS pad FROM generate_series(1::bigint, {rows}) i"
            subprocess.run([*ask, make], check=True, capture_output=True, **as_user)
            start = time.monotonic()
            done = subprocess.run([*ask, query], capture_output=True, text=True, **as_user)
            spent = time.monotonic() - start
            if done.returncode:
                sys.exit(f"postgres: {done.stderr.strip()[-150:]}")
        finally:
            server.terminate()
            server.wait()
        is_right = done.stdout.split() == [expected]
        if not is_right:
            print(f"postgres: {done.stdout[:200]!r} {done.stderr[:200]!r} in place of {expected!r}", file=sys.stderr)
        return per_second(spent, is_right)


def postgres_sort(mib, prefix):
    rows = (mib << 20) // 145
    query = "SELECT sum(k * r) FROM (SELECT k, row_number() OVER (ORDER BY k, pad) AS r FROM t) AS o"
    return postgres(prefix, rows, query, str(ordered(rows)))


def postgres_group(mib, prefix):
    rows = (mib << 20) // 165
    query = "SELECT count(*) || '/' || sum(c) FROM (SELECT k, count(*) AS c, max(pad) FROM t GROUP BY k) AS g"
    return postgres(prefix, rows, query, f"{rows}/{rows}")
