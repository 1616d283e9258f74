"""The manifest of real programs: reading, checking what is installed, building."""

import glob
import os
import shutil
import subprocess
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


@dataclass
class Program:
    """One entry of manifest.toml; paths are filled in."""

    name: str
    kind: str
    command: list
    needs: list
    cause: list
    cure: list
    best: dict
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

    entries = tomllib.loads((HERE / "manifest.toml").read_text(encoding="utf-8"))["program"]
    programs = [Program(**entry) for entry in entries if not only or entry["name"] in only]
    unknown = set(only) - {p.name for p in programs}
    if unknown:
        raise SystemExit(f"no such program in manifest.toml: {', '.join(sorted(unknown))}")
    for program in programs:
        program.command = [fill(word) for word in program.command]
        program.build = [fill(line) for line in program.build]
    return programs


def build_folder():
    """Where built programs and generated inputs go (ignored by git)."""
    out = ROOT / "target" / "bench-programs"
    out.mkdir(parents=True, exist_ok=True)
    return out


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
