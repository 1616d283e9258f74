#!/usr/bin/env bash
# util-linux 2.38.1 (fincore), vmtouch 1.3.1, Linux 6.18: to an ordinary user both report a file as wholly in the page cache
# when none of it is. Both ask mincore(2), which answers "resident" for every page of a file that the caller neither
# owns nor may write (mm/mincore.c, can_do_mincore, since Linux 5.2), without an error. Root sees 0 %, the user
# 100 %, of the same evicted file: whoever checks with them whether a database's files are warm learns nothing.
set -euo pipefail
[ "$(id -u)" = 0 ] || { echo "needs root, to ask as two users"; exit 2; }
work=$(mktemp -d -p /var/tmp)
trap 'rm -rf "$work"' EXIT
cd "$work"
chmod 755 .
apt-get download -qq vmtouch=1.3.1-2 util-linux-extra=2.38.1-5+deb12u3 2>/dev/null || { echo "these versions are not served here"; exit 2; }
for package in *.deb; do dpkg-deb -x "$package" .; done
head -c 8M /dev/urandom > data
chmod 644 data
sync data
evict() { python3 -c 'import os; os.posix_fadvise(os.open("data", os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)'; }
as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
pages() { sed -nE 's/.*Resident Pages: ([0-9]+)\/.*/\1/p'; }
evict
root="$(usr/bin/fincore -n -r -o PAGES data) $(usr/bin/vmtouch data | pages)"
evict
user="$(as_user usr/bin/fincore -n -r -o PAGES data) $(as_user usr/bin/vmtouch data | pages)"
echo "$(usr/bin/fincore --version); vmtouch 1.3.1; $(uname -r)"
echo "pages of 2048 in memory, by fincore and vmtouch: as root $root, as an ordinary user $user"
[ "$root" = "0 0" ] || { echo "the file could not be evicted here"; exit 2; }
[ "$user" = "2048 2048" ] || { echo "changed"; exit 1; }
echo "as found: 0 % for root, 100 % for the user"
