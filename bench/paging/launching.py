"""How the programs under test are started, timed and judged."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

GROUP = os.environ.get("PAGING_GROUP")
# Debian's interpreter, which has the distribution's modules.
PYTHON = "/usr/bin/python3"


class NotInstalled(Exception):
    """A program that is not there."""


def needs(program):
    found = shutil.which(program)
    if not found:
        raise NotInstalled(f"{program} is not installed")
    return found


def needs_module(name):
    # It is not imported: its libraries would be in the page cache already, and not count for Linux.
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    if subprocess.run([PYTHON, "-c", look, name], capture_output=True).returncode:
        raise NotInstalled(f"{PYTHON} has no module {name}")


def join():
    """Enters the memory cgroup that PAGING_GROUP names."""
    if GROUP:
        pathlib.Path(GROUP, "tasks").write_text(str(os.getpid()))


def drop_caches():
    """So that no page of a file is in memory that would count for somebody else."""
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


def launch(prefix, words, user=None, **more):
    """Starts the program under test in its cgroup, as a user if told."""
    if GROUP:
        drop_caches()
    def prepare():
        join()
        if user:
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
    return subprocess.Popen([str(word) for word in [*prefix, *words]], preexec_fn=prepare, text=True, **more)


def per_second(spent, is_right, **figures):
    return {"figures": {"runs per second": 1 / spent, **figures}, "wrong": int(not is_right)}


def answer(prefix, words, expected, **more):
    """Runs the program to its end; what it prints must be what is expected."""
    start = time.monotonic()
    program = launch(prefix, words, stdout=subprocess.PIPE, **more)
    output, _ = program.communicate()
    spent = time.monotonic() - start
    ended_well(program.returncode)
    is_right = output.split() == expected.split()
    if not is_right:
        print(f"{output[:200]!r} in place of {expected!r}", file=sys.stderr)
    return per_second(spent, is_right)


def ended_well(status):
    """Ends here where the program under test did not: that is no wrong answer."""
    if status == -signal.SIGKILL:
        sys.exit("killed, by the kernel where memory is out")
    if status:
        sys.exit(f"it ended with status {status}")


@contextlib.contextmanager
def folder():
    """A temporary folder on the disk, not in memory."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("PAGING_FOLDER", "/var/tmp")) as name:
        yield pathlib.Path(name)
