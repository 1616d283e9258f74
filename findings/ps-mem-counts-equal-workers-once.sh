#!/usr/bin/env bash
# ps_mem 3.14 (PyPI), Linux 6.18: workers of one name whose smaps_rollup is the same text are counted as one process. It takes equal text
# for memory shared by CLONE_VM; forked workers have their parent's address space layout, so workers that did the same have equal text,
# too. Four workers with 100 MiB of their own each: 100.1 MiB (4), where the kernel's Private_Dirty adds up to 400 MiB.
set -euo pipefail
work=$(mktemp -d)
trap 'pkill -x pw-workers || true; rm -rf "$work"' EXIT
cd "$work"
python3 -m venv v
v/bin/pip install -q ps-mem==3.14
cat > workers.c <<'C'
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    for (int worker = 0; worker < 4; worker++) {
        if (fork() == 0) {
            size_t bytes = 100 << 20;
            char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(memory, 1, bytes);
            sleep(60);
            _exit(0);
        }
    }
    return 0;
}
C
gcc -O1 workers.c -o pw-workers
./pw-workers
# Wait until all have written to their memory.
private() { cat /proc/"$1"/smaps_rollup | awk '/^Private_Dirty/ {print $2}'; }
for _ in $(seq 100); do
    ready=0
    for pid in $(pgrep -x pw-workers); do [ "$(private "$pid")" -ge 102400 ] && ready=$((ready + 1)); done
    [ "$ready" -eq 4 ] && break
    sleep 0.1
done
total=0
for pid in $(pgrep -x pw-workers); do total=$((total + $(private "$pid"))); done
said=$(v/bin/ps_mem -p "$(pgrep -d, -x pw-workers)" | grep pw-workers)
echo "kernel: $total KiB of private memory in $ready workers; ps_mem: $said"
[ "$total" -ge 409600 ] && grep -qE '= 100\.[0-9] MiB' <<< "$said" || { echo "changed"; exit 1; }
echo "as found: four workers are counted as one"
