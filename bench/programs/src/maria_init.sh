#!/bin/sh
# Creates a MariaDB data folder with one table, once: `maria_init.sh FOLDER`.
set -e
data=$1
[ -e "$data/ready" ] && exit 0
mariadb-install-db --no-defaults --datadir="$data" --user="$(id -un)" --auth-root-authentication-method=normal >/dev/null 2>&1
touch "$data/ready"
