"""What the rows read: recordings made here, and recorded function_graph traces. Nothing is repeated."""
import os
import re
import shutil
import subprocess
from pathlib import Path

from tools import Missing, ROOT

# A database under load, a key-value store that forks, faults that fight for the lock, a fork storm,
# and workloads of one cause each on two kernels.
TRACES = [
    "contend-6.1/fork", "tpcc-6.1/trace", "workloads-6.1/swap", "redis-6.1/trace",
    "workloads-6.1/file", "contend-6.1/contend", "workloads-6.1/cow", "workloads-6.1/shm",
    "workloads-5.10/file", "workloads-6.1/zero", "workloads-5.10/swap", "workloads-6.1/events",
]
REDIS = "redis-6.1/trace"
TIME = re.compile(rb"^( *)(\d+)(\.\d{6} \|)", re.M)
BLOCK = 4 << 20

# Allocating, forking, mapping, faulting, sorting and switching at once.
STRESS = ["stress-ng", "--quiet", "--vm", "1", "--vm-bytes", "128m", "--fork", "1", "--mmap", "1",
          "--mmap-bytes", "64m", "--fault", "1", "--qsort", "1", "--pipe", "1", "--malloc", "1"]
# rustc of some forty crates, and C of a compression library.
COMPILERS = ["cargo", "build", "-q", "--locked", "-p", "pagewise-model"]
DATABASE = """
redis-server --unixsocket "$0" --port 0 --dir "$1" --save "1 1000" >/dev/null &
until redis-cli -s "$0" ping >/dev/null 2>&1; do sleep 0.1; done
timeout 20 redis-benchmark -s "$0" -q -c 20 -r 300000 -d 512 -n 100000000 -t set,get,lpush,hset,lrange >/dev/null
redis-cli -s "$0" shutdown nosave
wait; true
"""
SAMPLING = ["-e", "cpu-clock", "-F", "4999", "-g"]
# The most that perf takes: a hundred times a usual rate, for as many samples as an hour of many CPUs.
MOST = ["-e", "cpu-clock", "-c", "12500", "-g"]


def needed(program, package):
    if not shutil.which(program):
        raise Missing(f"{program} (apt install {package})")


class Inputs:
    """Inputs in a folder, each made when it is first asked for."""

    def __init__(self, folder, traces):
        self.folder, self.traces = folder, traces
        folder.mkdir(parents=True, exist_ok=True)

    def varied(self):
        """All traces as one text whose time goes on."""
        return self.made("varied.txt", self.write_varied)

    def redis(self):
        """One trace, of Redis."""
        return self.made("redis.txt", lambda out: out.write_bytes(b"".join(self.unpacked(REDIS))))

    def compilers(self):
        """perf.data of compilers."""
        def record(out):
            target = self.folder / "compiled"
            shutil.rmtree(target, ignore_errors=True)
            perf_record(out, SAMPLING, COMPILERS, CARGO_TARGET_DIR=str(target))
            shutil.rmtree(target)
        return self.made("compilers.data", record)

    def database(self):
        """perf.data of Redis under load, which saves now and then."""
        needed("redis-server", "redis")
        def record(out):
            work = self.folder / "database"
            work.mkdir(exist_ok=True)
            perf_record(out, SAMPLING, ["sh", "-c", DATABASE, work / "socket", work])
            shutil.rmtree(work)
        return self.made("database.data", record)

    def stress(self):
        """perf.data of stress-ng."""
        needed("stress-ng", "stress-ng")
        return self.made("stress.data", lambda out: perf_record(out, SAMPLING, [*STRESS, "--timeout", "20s"]))

    def many(self):
        """perf.data of stress-ng with millions of samples."""
        needed("stress-ng", "stress-ng")
        return self.made("many.data", lambda out: perf_record(out, MOST, [*STRESS, "--timeout", "50s"]))

    def text(self, recording):
        """perf script's text of a recording."""
        def write(out):
            with open(out, "wb") as text:
                script = ["perf", "script", "--no-inline", "-i", recording]
                subprocess.run(script, stdout=text, stderr=subprocess.DEVNULL, check=True)
        return self.made(f"{recording.stem}.txt", write)

    def made(self, name, make):
        path, part = self.folder / name, self.folder / f"{name}.part"
        if not path.exists():
            make(part)
            part.rename(path)
        return path

    def unpacked(self, name):
        """Blocks of whole lines of a trace."""
        needed("zstd", "zstd")
        packed = self.traces / f"{name}.txt.zst"
        if not packed.exists():
            raise Missing(f"{packed} (--traces names the folder)")
        lines = subprocess.Popen(["zstd", "-dqc", packed], stdout=subprocess.PIPE)
        while block := b"".join(lines.stdout.readlines(BLOCK)):
            yield block
        if lines.wait():
            raise Missing(f"{packed} whole: zstd can't unpack it")

    def write_varied(self, out):
        end = 0
        with open(out, "wb") as text:
            for name in TRACES:
                by = None
                for block in self.unpacked(name):
                    if by is None:
                        by = end - int(TIME.search(block)[2])
                    block = later(block, by)
                    text.write(block)
                    end = max([end, *(int(found[2]) for found in TIME.finditer(block[-BLOCK // 64:]))])
                end += 2


def later(text, seconds):
    def moved(found):
        width = len(found[1]) + len(found[2])
        return b"%*d%b" % (width, int(found[2]) + seconds, found[3])
    return TIME.sub(moved, text)


def perf_record(out, events, command, **environment):
    """Records a command and its children, with up to 8 MiB of buffer for each CPU."""
    needed("perf", "linux-perf")
    words = ["perf", "record", "-q", "-m", "2048", *events, "-o", out, "--", *command]
    done = subprocess.run([str(word) for word in words], cwd=ROOT, env={**os.environ, **environment},
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if not Path(out).exists():
        raise Missing(f"a recording, as perf failed: {done.stderr[-300:].strip()}")
