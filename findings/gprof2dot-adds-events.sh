#!/usr/bin/env bash
# gprof2dot 2025.4.14, `-f perf`: samples of all events of `perf script` are added up, each as one; the periods on their lines
# are passed over. Of the text below (valid output of perf script: 10 samples for 1 ms of CPU time each in `spin`, 90
# for ten page faults each in `touch`) it says touch 90 %, spin 10 %, where all of the CPU time is spin's.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
env/bin/pip install -q gprof2dot==2025.4.14
python3 - > script.txt <<'P'
def sample(at, period, event, function):
    print(f"prog  4711 {at:.6f}: {period:10} {event}: \n\t    55d0c0001139 {function}+0x10 (/usr/bin/prog)\n"
          f"\t    55d0c0001200 main+0x20 (/usr/bin/prog)\n")
for i in range(10): sample(100 + i / 1000, 1000000, "cpu-clock:u", "spin")
for i in range(90): sample(101 + i / 1000, 10, "page-faults:u", "touch")
P
env/bin/gprof2dot -f perf script.txt > graph.dot
grep -oE '(spin|touch)\\n[0-9.]+%' graph.dot
[ "$(grep -oE '(spin|touch)\\n[0-9.]+%' graph.dot | sort | tr '\n' ' ')" = 'spin\n10.00% touch\n90.00% ' ] || { echo "changed"; exit 1; }
echo "as found: page faults and CPU time are one sum"
