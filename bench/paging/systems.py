"""The systems under which a workload runs: kinds of Linux swap, kinds of pagewise, and peers.

Every system is a command before the program, an environment, and the setup around the run. All run
in one memory cgroup (version 1), whose limit is the budget for Linux and absent for the others, so
that the peak charged by the kernel is read in the same way for all. `pagewise:limited` has a limit
as well: the budget and what pagewise's own process takes, without swap, so that the page cache that
a program fills counts for it as for Linux. Caches are dropped before each run, else libraries that
an earlier run has read would count for pagewise alone: the kernel charges a file's page to the
cgroup that read it.
"""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

from launching import drop_caches

HERE = pathlib.Path(__file__).resolve().parent
PAGEWISE = os.environ.get("PAGEWISE", str(HERE.parent.parent / "target/release/pagewise"))
FOLDER = pathlib.Path(os.environ.get("PAGING_FOLDER", "/var/tmp"))
GROUP = pathlib.Path("/sys/fs/cgroup/memory/pagewise-bench")
ZSWAP = pathlib.Path("/sys/module/zswap/parameters")
ZRAM = pathlib.Path("/sys/class/zram-control")
# The file that workloads map.
MAPPED = FOLDER / f"pagewise-bench-mapped-{os.getpid()}"
SWAP_BYTES = 2 << 30
EXTMEM_BYTES = 1 << 30
# pagewise's process, and the kernel's memory for both.
OWN_MIB = 12
# Above other swap files of the machine, and below the compressed one.
PRIORITY = 32000
PEERS = {"umap": "UMAP_LIBRARY", "extmem": "EXTMEM_LIBRARY"}


def missing(system):
    """Why `system` cannot be measured here, or None."""
    if system in PEERS and not os.environ.get(PEERS[system]):
        return f"{PEERS[system]} is not set"
    if system == "linux+zram" and not ZRAM.exists():
        return "this kernel has no zram (CONFIG_ZRAM)"
    if system == "linux+zswap" and not ZSWAP.exists():
        return "this kernel has no zswap (CONFIG_ZSWAP)"
    return None


def command(system, budget, pool, faults):
    """Words in front of the program, and environment. `budget` and `pool` (of compressed pages, part
    of the budget) are in MiB; `faults` is the file that the replay policy reads."""
    if system == "umap":
        return [], {"UMAP_LIBRARY": os.environ["UMAP_LIBRARY"], "UMAP_BUFSIZE": str(budget * 256),
                    "UMAP_PAGESIZE": "4096", "UMAP_FILE": str(FOLDER / "pagewise-bench-umap")}
    if system == "extmem":
        # It manages mappings from 2 GiB on; no more of one is touched than by the others. Its
        # default of 32 GiB of disk would cost 1 GiB of memory for its tables.
        return [], {"LD_PRELOAD": os.environ["EXTMEM_LIBRARY"], "TOUCH_REGION_MIB": "2048",
                    "SWAPDIR": str(FOLDER / "pagewise-bench-extmem"), "DISKSIZE": str(EXTMEM_BYTES),
                    "DRAMSIZE": str(budget << 20)}
    if not system.startswith("pagewise"):
        return [], {}
    if system in ("pagewise", "pagewise:limited"):  # with its defaults
        return [PAGEWISE, "run", "--memory", f"{budget}M", "--store", str(FOLDER), "--"], {}
    if system == "pagewise:kernel":
        return [PAGEWISE, "run", "--engine", "kernel", "--memory", f"{budget}M", "--store", str(FOLDER), "--"], {}
    if system == "pagewise:auto":  # with its defaults but for the store
        return [PAGEWISE, "run", "--memory", f"{budget}M", "--store-kind", "auto", "--store", str(FOLDER), "--"], {}
    _, delivery, policy, *kind = system.split(":")
    if policy == "replay":
        policy = f"replay:{faults}"
    words = [PAGEWISE, "run", "--memory", f"{budget}M", "--policy", policy, "--delivery", delivery,
             "--min-region", "4M", "--store", str(FOLDER)]
    if kind:
        words += ["--store-kind", kind[0], "--compressed", str(round(100 * pool / budget))]
    return [*words, "--"], {}


@contextlib.contextmanager
def machine():
    """The swap file, the peers' file and the memory cgroup, for as long as the bench runs."""
    swap = FOLDER / f"pagewise-bench-swap-{os.getpid()}"
    peers_file = FOLDER / "pagewise-bench-extmem"
    try:
        allocate(swap, SWAP_BYTES)
        if not missing("extmem"):
            allocate(peers_file, EXTMEM_BYTES)
        run("mkswap", swap)
        run("swapon", "-p", PRIORITY, swap)
        GROUP.mkdir(exist_ok=True)
        yield
    finally:
        subprocess.run(["swapoff", str(swap)], check=False)
        swap.unlink(missing_ok=True)
        peers_file.unlink(missing_ok=True)
        MAPPED.unlink(missing_ok=True)
        try:
            GROUP.rmdir()
        except OSError as error:
            print(f"{GROUP} stays: {error}", file=sys.stderr)


@contextlib.contextmanager
def around(system, budget, pool):
    """The limit of the cgroup, and compressed swap where `system` is one with it."""
    limits = {"linux": budget, "pagewise:limited": budget + OWN_MIB}
    limit = budget - pool if system.startswith("linux+") else limits.get(system)
    drop_caches()
    (GROUP / "memory.limit_in_bytes").write_text(str(limit << 20) if limit else "-1")
    (GROUP / "memory.swappiness").write_text("60" if system.startswith("linux") else "0")
    (GROUP / "memory.max_usage_in_bytes").write_text("0")
    with zram(pool) if system == "linux+zram" else zswap() if system == "linux+zswap" else contextlib.nullcontext():
        yield


def peak_mib():
    return int((GROUP / "memory.max_usage_in_bytes").read_text()) >> 20


def join_group():
    (GROUP / "tasks").write_text(str(os.getpid()))


def end_all():
    """Kills what is left in the cgroup: servers have sessions of their own."""
    for _ in range(200):
        pids = [int(pid) for pid in (GROUP / "tasks").read_text().split()]
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


@contextlib.contextmanager
def zram(pool):
    """A compressed swap device of its own that may use `pool` MiB of memory."""
    number = (ZRAM / "hot_add").read_text().strip()
    block, device = pathlib.Path(f"/sys/block/zram{number}"), f"/dev/zram{number}"
    try:
        # LZ4, as the compressed store of pagewise.
        (block / "comp_algorithm").write_text("lz4")
        (block / "disksize").write_text(str(SWAP_BYTES))
        (block / "mem_limit").write_text(f"{pool}M")
        run("mkswap", device)
        run("swapon", "-p", PRIORITY + 1, device)
        yield
    finally:
        subprocess.run(["swapoff", device], check=False)
        (ZRAM / "hot_remove").write_text(number)


@contextlib.contextmanager
def zswap():
    """Compressed pages in front of the swap file. Its pool has no limit below 1 % of all memory."""
    before = (ZSWAP / "enabled").read_text().strip()
    (ZSWAP / "enabled").write_text("Y")
    try:
        yield
    finally:
        (ZSWAP / "enabled").write_text(before)


def allocate(path, size):
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
    path.chmod(0o600)


def run(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)
