#!/usr/bin/env bash
# memray 1.20.0 follows mmap and munmap but not mremap: a private mapping that grows by mmap.resize() from 1 to 512 MiB, all of
# it written, shows a peak of 1.09 MB where the process has more than 512 MiB resident.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
env/bin/pip install -q memray==1.20.0
cat > grows.py <<'P'
import mmap, resource
m = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.resize(512 << 20)
for at in range(0, 512 << 20, 4096):
    m[at] = 1
print("resident", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, "MiB")
P
env/bin/memray run -q -o out.bin grows.py
peak=$(env/bin/memray stats out.bin | sed -n '/Peak memory usage/{n;s/[[:space:]]*//p}')
echo "memray: peak $peak"
case $peak in
    1.*MB) echo "as found: growth by mremap is not seen" ;;
    *) echo "changed"; exit 1 ;;
esac
