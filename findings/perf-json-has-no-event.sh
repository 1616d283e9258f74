#!/usr/bin/env bash
# perf 6.1 (Debian 12: linux-perf): `perf data convert --to-json` writes neither the event nor the period of a sample. Of a
# recording with two events, the samples of both stand in one list and cannot be told apart; a sample for ten page faults counts like one
# for a millisecond of CPU time. Keys of each sample: callchain, comm, pid, tid, timestamp. Needs perf software events.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
perf=$(command -v perf || true)
case $("${perf:-false}" --version 2>/dev/null) in
    "perf version 6.1."*) ;;
    *) echo "perf 6.1 is not installed (apt-get install linux-perf on Debian 12)"; exit 2 ;;
esac
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
