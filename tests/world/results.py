"""results.jsonl: one line for each program of each row. `first` is the verdict of the first time it was asked about,
before any rule was changed for it."""
import fcntl
import json
import os
from pathlib import Path

FILE = Path(__file__).resolve().parent / "results.jsonl"


def load():
    return [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []


def key(result):
    return result["row"], result["program"]


def known(row, program):
    """The earlier result of a program, or none."""
    return next((one for one in load() if key(one) == (row, program)), None)


def keep(result):
    """Writes a result in place of an earlier one for the same program. Other runs may do so at the same time."""
    folder = os.open(FILE.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        earlier = known(*key(result))
        result["first"] = earlier["first"] if earlier else result["verdict"].split(":")[0]
        others = [one for one in load() if key(one) != key(result)]
        lines = [json.dumps(one, sort_keys=True) for one in sorted([*others, result], key=key)]
        fresh = FILE.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n")
        fresh.rename(FILE)
    finally:
        os.close(folder)
