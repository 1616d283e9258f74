"""Shares of a program's CPU time by perf and by /proc: the reference for an account of its time.

`perf record` samples cpu-clock with kernel stacks, as root. A sample belongs to user mode, to the
kernel, or to the kernel below the page fault handler. The waits of the first process's main thread
are its lifetime minus the times in /proc/PID/schedstat.
"""

import math
import os
import statistics
import subprocess
import tempfile

RUNS = 2
HERTZ = 1999
# arch/x86/mm/fault.c, mm/memory.c, mm/gup.c; AArch64: arch/arm64/mm/fault.c.
FAULT = {"asm_exc_page_fault", "exc_page_fault", "handle_mm_fault", "do_page_fault", "do_mem_abort", "faultin_page"}
SIGMAS = 2.0


def measure(program, out, plain):
    """Shares by name, with those of `plain` runs by wait4(2) and by their waiting, each with value, low and high; None where perf cannot sample the kernel."""
    if os.geteuid() != 0:
        return None
    runs = [sample(program, out) for _ in range(RUNS)]
    if not all(run["samples"] for run in runs):
        return None
    told = {name: share([run[name] for run in runs], [run["samples"] for run in runs]) for name in ("user", "kernel", "fault")}
    by_wait4 = share([run["system"] / max(run["cpu"], 1e-9) for run in plain])
    told["kernel"] = spanning(told["kernel"], by_wait4)
    told["user"] = spanning(told["user"], {"low": 1 - by_wait4["high"], "high": 1 - by_wait4["low"]})
    waiting = share([run["waiting"] for run in plain])
    return {**told, "waiting": waiting, "samples": sum(run["samples"] for run in runs)}


def share(values, samples=None):
    """The median, and from the least to the largest; by samples with the doubt that each count has."""
    doubt = [SIGMAS * math.sqrt(max(v * (1 - v), 1 / n) / n) for v, n in zip(values, samples)] if samples else [0] * len(values)
    low = min(v - d for v, d in zip(values, doubt))
    high = max(v + d for v, d in zip(values, doubt))
    return {"value": statistics.median(values), "low": max(low, 0.0), "high": min(high, 1.0)}


def spanning(one, other):
    """What holds both estimates."""
    return {**one, "low": min(one["low"], other["low"]), "high": max(one["high"], other["high"])}


def sample(program, out):
    """One run under perf: samples, and the shares of them."""
    with tempfile.TemporaryDirectory(dir=out) as folder:
        data = os.path.join(folder, "perf.data")
        words = ["perf", "record", "-q", "-F", str(HERTZ), "-e", "cpu-clock", "--kernel-callchains", "-g", "-o", data, "--"]
        # perf would look the program up by the changed environment; env(1) sets it behind perf.
        changed = [f"{name}={value}" for name, value in program.env.items()]
        subprocess.run([*words, "env", *changed, *program.command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        script = subprocess.run(["perf", "script", "-i", data, "-F", "pid,ip,sym"], capture_output=True, text=True, check=True)
    return count(script.stdout)


def count(text):
    """Shares of what `perf script -F pid,ip,sym` prints: a line with the process, beneath it the kernel's
    stack where it is the kernel's sample, an empty line."""
    samples = kernel = fault = 0
    for sample in filter(str.strip, text.split("\n\n")):
        _, *stack = sample.strip("\n").splitlines()
        samples += 1
        kernel += bool(stack)
        fault += bool(FAULT & {word for line in stack for word in line.split()[1:2]})
    total = max(samples, 1)
    return {"samples": samples, "user": 1 - kernel / total, "kernel": kernel / total, "fault": fault / total}


def words(told):
    """One line for the person who waits."""
    if not told:
        return "shares not measured"
    parts = (f"{name} {100 * told[name]['value']:.0f} %" for name in ("user", "kernel", "fault", "waiting"))
    return ", ".join(parts)
