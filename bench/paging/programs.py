#!/usr/bin/env python3
"""Programs that people run, each with a data set of a given size and its results checked.

Usage: programs.py NAME MIB [PREFIX...]

NAME is one of those in PROGRAMS below; MIB is about what it needs plainly. PREFIX is put in front of
the program under test; clients, generators and checks run without it, and before or after the clock.
Prints one line of JSON; exits 1 on a wrong byte or answer, and 2 where the program is not installed.
"""
import json
import sys

import arrays
import databases
import keyvalue
import runtimes
import tools
from launching import NotInstalled

PROGRAMS = {
    "redis": keyvalue.redis, "redis-save": keyvalue.redis_save,
    "sqlite": databases.sqlite, "duckdb": databases.duckdb,
    "postgres-sort": databases.postgres_sort, "postgres-group": databases.postgres_group,
    "numpy": arrays.numpy, "pandas": arrays.pandas, "torch": arrays.torch,
    "sort": tools.sort, "gcc": tools.gcc,
    "java-g1": runtimes.java_g1, "java-zgc": runtimes.java_zgc, "node": runtimes.node,
    "collect": runtimes.collect,
}


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in PROGRAMS:
        sys.exit(f"{__doc__}\nNames: {', '.join(PROGRAMS)}")
    try:
        result = PROGRAMS[sys.argv[1]](int(sys.argv[2]), sys.argv[3:])
    except NotInstalled as missing:
        print(f"{sys.argv[1]}: {missing}", file=sys.stderr)
        sys.exit(2)
    print(json.dumps(result))
    sys.exit(result["wrong"] != 0)
