"""The manifest of real programs: reading, checking for installed programs, building."""

import glob
import os
import shutil
import signal
import subprocess
import threading
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# A run that takes longer is ended: programs of the benches take seconds.
LIMIT_S = 120


@dataclass
class Program:
    """One entry of manifest.toml; paths are filled in."""

    name: str
    kind: str
    family: str
    command: list
    needs: list
    cause: list
    arms: dict = field(default_factory=dict)
    malloc: bool = True
    gain: str = "cpu"
    env: dict = field(default_factory=dict)
    package: str = ""
    build: list = field(default_factory=list)

    def missing(self):
        """What this machine lacks to run the program, in words; empty when all is there."""
        return [need for need in self.needs if not _present(need)]

    def build_once(self, out):
        """Runs the build lines; raises CalledProcessError with the compiler's words on stderr."""
        for line in self.build:
            subprocess.run(line, shell=True, check=True, stdout=subprocess.DEVNULL)


def _present(need):
    if need.startswith("/"):
        return os.path.exists(need)
    if ".so" in need:
        return bool(glob.glob(f"/usr/lib/*/{need}") or glob.glob(f"/usr/lib*/{need}"))
    return shutil.which(need) is not None


def load(out, only=()):
    """Programs of the manifest, all or the named ones, with placeholders replaced."""
    places = {"{here}": str(HERE), "{root}": str(ROOT), "{out}": str(out)}

    def fill(text):
        for key, value in places.items():
            text = text.replace(key, value)
        return text

    manifest = tomllib.loads((HERE / "manifest.toml").read_text(encoding="utf-8"))
    programs = [Program(**entry) for entry in manifest["program"] if not only or entry["name"] in only]
    unknown = set(only) - {p.name for p in programs}
    if unknown:
        raise SystemExit(f"no such program in manifest.toml: {', '.join(sorted(unknown))}")
    for program in programs:
        program.command = [fill(word) for word in program.command]
        program.build = [fill(line) for line in program.build]
        program.arms = {
            name: {variable: fill(value) for variable, value in settings.items()}
            for group in program.arms for name, settings in manifest["arms"][group].items()
        }
    return programs


def build_folder():
    """Where built programs and generated inputs go (ignored by git), with what runs a command without
    huge pages, and what runs one as in a container."""
    out = ROOT / "target" / "bench-programs"
    out.mkdir(parents=True, exist_ok=True)
    for wrapper in ("without_huge_pages", "as_in_a_container"):
        subprocess.run(["cc", "-O1", "-o", str(out / wrapper), str(HERE / f"src/{wrapper}.c")], check=True)
    return out


def run_once(program, extra):
    """Runs the program with further variables, without those that are None; returns wall, CPU, system seconds, faults, peak RSS
    in KiB, and the share of its main thread's life in which it waited."""
    changed = {**os.environ, **program.env, **extra}
    environment = {name: value for name, value in changed.items() if value is not None}
    wrap = environment.pop("BENCH_WRAP", "")
    command = [*wrap.split(), *program.command]
    started = time.monotonic()
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
    pid = os.posix_spawnp(command[0], command, environment, file_actions=actions, setpgroup=0)
    overdue = threading.Timer(LIMIT_S, os.killpg, (pid, signal.SIGKILL))
    overdue.start()
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except BaseException:
        os.killpg(pid, signal.SIGKILL)
        raise
    finally:
        # The process is a zombie at most: its number is its own until wait4.
        overdue.cancel()
        overdue.join()
    wall = time.monotonic() - started
    waiting = _waiting(pid, wall)
    _, status, usage = os.wait4(pid, 0)
    os.close(null)
    if wall >= LIMIT_S:
        raise RuntimeError(f"{program.name} with {extra} did not end within {LIMIT_S} s")
    if status != 0:
        raise RuntimeError(f"{program.name} with {extra} ended with status {status}")
    return {
        "wall": wall,
        "waiting": waiting,
        "cpu": usage.ru_utime + usage.ru_stime,
        "system": usage.ru_stime,
        "faults": usage.ru_minflt + usage.ru_majflt,
        "rss_kib": usage.ru_maxrss,
    }


def _waiting(pid, lifetime):
    """The share of a dead process's main thread's life, but for when it was ready for a CPU, in which it waited."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as stat:
        on_cpu, ready = (int(word) / 1e9 for word in stat.read().split()[:2])
    return max(0.0, 1 - on_cpu / max(lifetime - ready, 1e-9))


def prepare(program, out, install):
    """Makes the program ready; returns None, or why it is skipped."""
    missing = program.missing()
    if missing and install and program.package:
        subprocess.run(["apt-get", "install", "-y", "-q", *program.package.split()],
                       check=False, stdout=subprocess.DEVNULL)
        missing = program.missing()
    if missing:
        hint = f" (apt-get install {program.package})" if program.package else ""
        return f"missing {', '.join(missing)}{hint}"
    try:
        program.build_once(out)
    except subprocess.CalledProcessError as error:
        return f"build failed: {error.cmd}"
    return None
