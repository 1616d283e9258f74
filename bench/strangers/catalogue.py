"""The manifest of strangers' programs: reading, splitting into two halves, installing, preparing."""

import hashlib
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "programs"))
import programs as known_programs  # noqa: E402  (how one run is measured is shared with bench/programs)

run_once = known_programs.run_once
HALVES = ("tuning", "kept")


@dataclass
class Program:
    """One program; placeholders are filled in. `arms` are settings by name, tried beside the generic ones."""

    name: str
    kind: str
    command: list
    build: list = field(default_factory=list)
    apt: str = ""
    pip: str = ""
    npm: str = ""
    env: dict = field(default_factory=dict)
    arms: dict = field(default_factory=dict)
    gain: str = "cpu"

    @property
    def half(self):
        return half(self.name)


def half(name):
    """Which half a program is in: a hash of its name decides, so that nobody chooses."""
    return HALVES[hashlib.sha256(name.encode()).digest()[0] % 2]


def load(out, names=(), wanted=None):
    """Programs in the order of the hashes of their names, so that a part of them is a sample of all."""
    manifest = tomllib.loads((HERE / "manifest.toml").read_text(encoding="utf-8"))
    found = list(_groups(manifest.pop("group")))
    arms = manifest.pop("arms")
    if manifest:
        raise SystemExit(f"manifest.toml: unknown tables {', '.join(manifest)}")
    listed = sorted((_filled(entry, arms, out) for entry in found), key=lambda one: hashlib.sha256(one.name.encode()).digest()[1:])
    unknown = set(names) - {one.name for one in listed}
    if unknown:
        raise SystemExit(f"no such program in manifest.toml: {', '.join(sorted(unknown))}")
    return [one for one in listed if (not names or one.name in names) and wanted in (None, one.half)]


def _groups(groups):
    """One entry for each program of a group; {name} and {size} stand for its own in command and build."""
    for group in groups:
        sizes = group.pop("sizes")
        for name, size in sizes.items():
            size = size if isinstance(size, dict) else {"size": size}
            places = {"{name}": name, **{f"{{{key}}}": str(value) for key, value in size.items()}}
            yield {**{key: _put(value, places) for key, value in group.items() if key != "prefix"}, "name": f"{group['prefix']}-{name}"}


def _filled(entry, arms, out):
    entry = _put(entry, {"{here}": str(HERE), "{root}": str(ROOT), "{out}": str(out)})
    own = {name: _put(settings, {"{out}": str(out)}) for group in entry.pop("arms", []) for name, settings in arms[group].items()}
    return Program(**entry, arms=own)


def _put(value, places):
    if isinstance(value, dict):
        return {key: _put(one, places) for key, one in value.items()}
    if isinstance(value, list):
        return [_put(one, places) for one in value]
    for key, text in places.items():
        value = value.replace(key, text) if isinstance(value, str) else value
    return value


def folder():
    """Where packages of pip and npm, inputs and outputs go (ignored by git)."""
    out = ROOT / "target" / "bench-strangers"
    out.mkdir(parents=True, exist_ok=True)
    wrapper = known_programs.HERE / "src" / "without_huge_pages.c"
    subprocess.run(["cc", "-O1", "-o", str(out / "without_huge_pages"), str(wrapper)], check=True)
    return out


def install(listed, out):
    """Installs what the programs need, one call to each package manager."""
    needed = {key: sorted({word for one in listed for word in getattr(one, key).split()}) for key in ("apt", "pip", "npm")}
    if needed["apt"]:
        subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *needed["apt"]], check=False, stdout=subprocess.DEVNULL)
    if needed["pip"]:
        if not (out / "venv").exists():
            subprocess.run(["python3", "-m", "venv", str(out / "venv")], check=True)
        subprocess.run([str(out / "venv/bin/pip"), "install", "-q", *needed["pip"]], check=False)
    if needed["npm"]:
        (out / "npm").mkdir(exist_ok=True)
        (out / "npm/package.json").write_text('{"private":true}\n', encoding="utf-8")
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent", *needed["npm"]]
        subprocess.run(command, cwd=out / "npm", check=False)


_building = Lock()


def prepare(program):
    """Makes the program's inputs, one program at a time; returns None, or why it is skipped."""
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    try:
        with _building:
            for line in program.build:
                subprocess.run(line, shell=True, check=True, **silent)
    except subprocess.CalledProcessError as error:
        return f"build failed: {error.cmd}"
    if shutil.which(program.command[0]) is None:
        return f"missing {program.command[0]}"
    return None
