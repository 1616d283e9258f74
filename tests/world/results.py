"""results.jsonl: one line for each program of each row. `first` is the verdict of the first time it was asked about,
before any rule was changed for it."""
import contextlib
import fcntl
import json
import os
from pathlib import Path

import judge

FILE = Path(__file__).resolve().parent / "results.jsonl"


def load():
    return [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []


def key(result):
    return result["row"], result["program"]


def known(row, program):
    """The earlier result of a program, or none."""
    return next((one for one in load() if key(one) == (row, program)), None)


@contextlib.contextmanager
def changed():
    """All results, which are written back; runs at the same time wait for one another."""
    folder = os.open(FILE.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        found = load()
        yield found
        lines = [json.dumps(one, sort_keys=True) for one in sorted(found, key=key)]
        fresh = FILE.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n")
        fresh.rename(FILE)
    finally:
        os.close(folder)


def keep(result):
    """Writes a result in place of an earlier one for the same program."""
    with changed() as found:
        earlier = [one for one in found if key(one) == key(result)]
        result["first"] = earlier[0]["first"] if earlier else result["verdict"].split(":")[0]
        found[:] = [one for one in found if key(one) != key(result)] + [result]


def judge_again():
    """Verdicts by today's rules of judging, also of the first time where that was the only one."""
    with changed() as found:
        for one in filter(lambda one: "truth" in one, found):
            told = {"said": one["said"], "advised": one["advised"],
                    "offered": one.get("offered", one["verdict"] == "left to a proof")}
            one.pop("best_gain", None)
            one.pop("advised_gain", None)
            only = one["first"] == one["verdict"]
            one.update(judge.judged(told, one["truth"]))
            one["first"] = one["verdict"] if only else one["first"]
