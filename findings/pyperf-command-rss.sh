#!/usr/bin/env bash
# pyperf 2.11.0: `pyperf command` reports as command_max_rss the peak of its own Python process, where the command's is smaller.
# The kernel counts a process's peak from its fork on, exec included (fs/exec.c, exec_mmap), so what ran before exec is in it.
# /bin/true has 1 MiB and is reported with more than 8.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
env/bin/pip install -q pyperf==2.11.0
env/bin/python -m pyperf command --processes 2 --values 2 --warmups 0 --loops 1 -q -o true.json -- /bin/true
python3 - <<'P'
import json, resource, subprocess, sys
text = open("true.json").read()
reported = min(run["metadata"]["command_max_rss"] for run in json.loads(text)["benchmarks"][0]["runs"] if "command_max_rss" in run.get("metadata", {}))
# The command's own peak, as it says itself after exec from a small process.
own = int(subprocess.run(["sh", "-c", "sh -c 'exec grep VmHWM /proc/self/status'"], capture_output=True, text=True).stdout.split()[1]) * 1024
print(f"pyperf: command_max_rss {reported / 2**20:.1f} MiB; a small program's own peak {own / 2**20:.1f} MiB")
sys.exit(0 if reported > 8 * 2**20 > 2 * own else 1)
P
echo "as found: the peak is the launcher's"
