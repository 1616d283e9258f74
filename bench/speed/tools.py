"""What the rows run: builds of Pagewise, and the programs that they are compared with."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INFERNO = "0.12.8"
PREFIXSPAN = "0.5.2"


class Missing(Exception):
    """What a row needs and does not have."""


def pagewise():
    """The binary to measure: the one that PAGEWISE names, or a release build."""
    named = os.environ.get("PAGEWISE")
    if named:
        return Path(named).resolve()
    build = ["cargo", "build", "--release", "--locked", "-q", "-p", "pagewise"]
    subprocess.run(build, cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/pagewise"


def inferno(folder):
    """inferno-collapse-perf, installed into a folder of its own."""
    program = folder / f"inferno-{INFERNO}/bin/inferno-collapse-perf"
    if not program.exists():
        words = ["cargo", "install", "-q", "inferno", "--version", INFERNO, "--locked", "--root", program.parents[1]]
        if subprocess.run(words, check=False).returncode:
            raise Missing(f"inferno-collapse-perf {INFERNO}: cargo install inferno failed")
    return program


def prefixspan(folder):
    """A Python that has PrefixSpan-py, in an environment of its own."""
    python = folder / f"prefixspan-{PREFIXSPAN}/bin/python"
    if not python.exists():
        words = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"prefixspan=={PREFIXSPAN}"]
        if subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=False).returncode:
            raise Missing("PrefixSpan-py: python3 -m venv failed (apt install python3-venv)")
        if subprocess.run(words, check=False).returncode:
            shutil.rmtree(python.parents[1])
            raise Missing(f"PrefixSpan-py {PREFIXSPAN}: pip install prefixspan failed")
    return python


def version(*command):
    """What a program says of its version, in a few words."""
    if not shutil.which(command[0]):
        return f"no {Path(command[0]).name}"
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout or done.stderr).strip().partition("\n")[0]
