#!/usr/bin/env bash
# perf 6.1.192 (Debian 12): `perf data convert --to-json` writes neither the event nor the period of a sample. Of a
# recording with two events, the samples of both stand in one list and cannot be told apart; a sample for ten page faults counts like one
# for a millisecond of CPU time. Keys of each sample: callchain, comm, pid, tid, timestamp. Needs perf software events.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# Debian 12's package, pinned; its libraries come with any linux-perf (apt-get install linux-perf).
apt-get download -qq linux-perf=6.1.192-3 2>/dev/null || { echo "linux-perf=6.1.192-3 is not served here"; exit 2; }
dpkg-deb -x linux-perf_*.deb perf-package
PATH=$PWD/perf-package/usr/bin:$PATH
perf --version 2>/dev/null || { echo "perf lacks libraries: $(ldd "$(command -v perf)" | grep "not found" | xargs)"; exit 2; }
perf record -q -e cpu-clock/freq=1000/ -e page-faults/period=10/ -g -o perf.data -- \
    python3 -c 'for _ in range(20): b"x" * (8 << 20)' 2>/dev/null
perf data convert --to-json all.json -i perf.data --force 2>/dev/null
perf script -i perf.data -F event,period 2>/dev/null | sort | uniq -c | sort -rn | head -4
python3 - <<'P'
import json, sys
samples = json.load(open("all.json"))["samples"]
keys = sorted({key for sample in samples for key in sample})
print(len(samples), "samples, with", ", ".join(keys))
sys.exit(0 if keys == ["callchain", "comm", "pid", "tid", "timestamp"] else 1)
P
echo "as found: no event, no period"
