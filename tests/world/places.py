"""Where the programs of the world run: roots of Debian, made by debootstrap, and this machine with toolchains from
packages. All of it is kept in the cache folder, so that the next run has it."""
import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
LIBRARIES = ["usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib", "usr/local/lib"]


class Missing(Exception):
    """What a row needs and this machine does not have."""


def quiet(words, **more):
    """Runs a command to its end; its last lines are the reason if it fails."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", **more)
    if done.returncode:
        last = " | ".join(done.stdout.strip().splitlines()[-3:])
        raise Missing(f"{' '.join(map(str, words))[:120]}: {last[:300]}")
    return done.stdout


def copy_name(pagewise):
    """The name of a program's copy: runs at the same time may ask different ones."""
    if not pagewise.exists():
        return "pagewise"
    about = pagewise.stat()
    return f"pagewise-{about.st_size:x}-{about.st_mtime_ns:x}"


class Place:
    """A file system in which commands run."""

    def __init__(self, name, cache, pagewise):
        self.name, self.cache = name, cache
        self.root = Path("/") if name == "host" else cache / "roots" / name
        self.shared = self.root / "world" if name != "host" else cache
        self.inside = "/world" if name != "host" else str(cache / "built")
        self.is_current = False
        self.pagewise = str(pagewise) if name == "host" else f"/world/{copy_name(pagewise)}"
        if name != "host":
            self.make()
            self.mount(pagewise)

    def make(self):
        """The root, unless it is there."""
        if (self.root / "usr/bin/env").exists() and not (self.root / "debootstrap").exists():
            return
        if not shutil.which("debootstrap"):
            raise Missing("there is no debootstrap (apt install debootstrap)")
        self.root.parent.mkdir(parents=True, exist_ok=True)
        with open(self.root.parent / f"{self.name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (self.root / "debootstrap").exists():
                shutil.rmtree(self.root)
            if not self.root.exists():
                mirror = os.environ.get("PAGEWISE_MIRROR")
                quiet(["debootstrap", "--variant=minbase", self.name, self.root] + ([mirror] if mirror else []))

    def mount(self, pagewise):
        """The kernel's file systems, the programs and Pagewise. The caller has a mount namespace of its own."""
        for name in ["proc", "sys", "dev"]:
            quiet(["mount", "--rbind", f"/{name}", self.root / name])
        self.shared.mkdir(exist_ok=True)
        quiet(["mount", "--bind", self.cache / "built", self.shared])
        copy = self.shared / copy_name(pagewise)
        if pagewise.exists() and not copy.exists():
            fresh = copy.with_name(f"{copy.name}.{os.getpid()}")
            shutil.copy(pagewise, fresh)
            fresh.rename(copy)
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")

    def enter(self, words, environment=None):
        """The command line that runs these words here, with these variables and few others."""
        given = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
                 **(environment or {})}
        clean = ["env", "-i"] + [f"{name}={value}" for name, value in given.items()]
        return ([] if self.name == "host" else ["chroot", str(self.root)]) + clean + list(words)

    def install(self, packages):
        """Debian packages, in a root only: this machine is left as it is."""
        absent = [one for one in packages if not self.version_of(one)]
        if not absent:
            return
        if self.name == "host":
            raise Missing(f"not installed: {', '.join(absent)}")
        if not self.is_current:
            quiet(self.enter(["apt-get", "-qq", "-o", "Acquire::Check-Valid-Until=false", "update"]))
            self.is_current = True
        for one in absent:
            self.install_one(one.split("|"))

    def install_one(self, names):
        """The first of these packages that there is."""
        get = ["apt-get", "-qq", "-y", "-o", "DPkg::Lock::Timeout=600", "--no-install-recommends", "install"]
        for name in names:
            try:
                quiet(self.enter([*get, name], {"DEBIAN_FRONTEND": "noninteractive"}))
                return
            except Missing as why:
                if name == names[-1]:
                    raise why

    def version_of(self, package):
        """The upstream version of an installed package (or of the first of several that is), or none."""
        if "|" in package:
            return next(filter(None, map(self.version_of, package.split("|"))), None)
        done = subprocess.run(self.enter(["dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Version}", package]),
                              capture_output=True, text=True)
        state, _, version = done.stdout.strip().partition("  ")
        if done.returncode or not state.startswith("ii"):
            return None
        return re.sub(r"^\d+:|[-+~].*$", "", version)

    def library(self, names):
        """The first of these libraries that is installed here."""
        folders = [self.root / folder for folder in LIBRARIES]
        found = (folder / name for name in names for folder in folders if (folder / name).exists())
        file = next(found, None)
        return file and "/" + str(file.relative_to(self.root))
