"""redis-server, asked over its socket."""
import contextlib
import pathlib
import random
import socket
import subprocess
import time

from launching import folder, launch, needs, per_second

VALUE_BYTES = 1000


def value(number):
    return random.Random(number).randbytes(VALUE_BYTES)


def replies(file, count):
    """Bodies of `count` replies; None for those without one."""
    for _ in range(count):
        line = file.readline()
        if line[:1] == b"$" and line != b"$-1\r\n":
            yield file.read(int(line[1:]) + 2)[:-2]
        else:
            yield None


@contextlib.contextmanager
def serving(place, prefix):
    """A server in a folder: its socket's path, and a file to talk to it."""
    path = f"{place}/socket"
    words = [needs("redis-server"), "--port", "0", "--unixsocket", path, "--save", "", "--dir", place]
    server = launch(prefix, words, stdout=subprocess.DEVNULL)
    for _ in range(400):
        if pathlib.Path(path).exists() or server.poll() is not None:
            break
        time.sleep(0.05)
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    file = client.makefile("rwb")
    for _ in range(2400):
        file.write(b"PING\r\n")
        file.flush()
        if file.readline() == b"+PONG\r\n":  # else it is reading its file
            break
        time.sleep(0.05)
    yield path, file
    file.write(b"SHUTDOWN NOSAVE\r\n")
    file.flush()
    server.wait()


def key(number):
    return f"key:{number:012d}"


def keys_of(mib):
    return (mib << 20) // (VALUE_BYTES + 120)


def pipelined(file, numbers, words):
    """Each number with the reply to the command that `words` makes of it."""
    numbers = list(numbers)
    for first in range(0, len(numbers), 500):
        part = numbers[first:first + 500]
        for number in part:
            pieces = [piece if isinstance(piece, bytes) else piece.encode() for piece in words(number)]
            file.write(b"*%d\r\n" % len(pieces) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in pieces))
        file.flush()
        yield from zip(part, replies(file, len(part)))


def fill(file, keys):
    for _ in pipelined(file, range(keys), lambda number: ("SET", key(number), value(number))):
        pass


def count_wrong(file, numbers):
    return sum(body != value(number) for number, body in pipelined(file, numbers, lambda number: ("GET", key(number))))


def redis(mib, prefix):
    """GET and SET of clients beside each other."""
    keys, figures, wrong = keys_of(mib), {}, 0
    with folder() as place, serving(place, prefix) as (path, file):
        fill(file, keys)
        for test, requests in (("get", 30000), ("set", 15000)):
            if test == "set":
                # The read-back check comes before the benchmark's own values replace ours.
                wrong = count_wrong(file, range(0, keys, 3))
            done = subprocess.run(["redis-benchmark", "-s", path, "-t", test, "-n", str(requests), "-r", str(keys),
                                   "-d", str(VALUE_BYTES), "-c", "8", "--csv"], capture_output=True, text=True,
                                  check=True)
            figures[f"{test} per second"] = float(done.stdout.splitlines()[-1].split(",")[1].strip('"'))
    return {"figures": figures, "wrong": wrong}


def told(file, name):
    """A field of INFO."""
    file.write(b"INFO persistence\r\n")
    file.flush()
    text = next(replies(file, 1)).decode()
    return next(line.split(":")[1] for line in text.splitlines() if line.startswith(f"{name}:"))


def redis_save(mib, prefix):
    """BGSAVE of a server that is written to meanwhile; the file is read by another server."""
    keys = keys_of(mib)
    with folder() as place:
        with serving(place, prefix) as (_, file):
            fill(file, keys)
            start = time.monotonic()
            file.write(b"BGSAVE\r\n")
            file.flush()
            file.readline()
            writes = 0
            while told(file, "rdb_bgsave_in_progress") == "1":
                part = random.Random(writes).sample(range(0, keys, 2), 50)
                for _ in pipelined(file, part, lambda number: ("SET", key(number), value(number))):
                    pass
                writes += len(part)
                time.sleep(0.01)
            spent = time.monotonic() - start
            is_right = told(file, "rdb_last_bgsave_status") == "ok"
        with serving(place, []) as (_, file):
            wrong = count_wrong(file, range(0, keys, 3))
    return per_second(spent, is_right and not wrong)
