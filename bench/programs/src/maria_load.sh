#!/bin/sh
# Starts MariaDB on a folder created by maria_init.sh, fills a table, queries it, and stops it:
# `maria_load.sh FOLDER`.
set -e
data=$1
mariadbd --no-defaults --datadir="$data" --user="$(id -un)" --skip-networking --socket="$data/s" --innodb-flush-log-at-trx-commit=0 2>/dev/null &
server=$!
until mariadb-admin --no-defaults -S "$data/s" ping >/dev/null 2>&1; do sleep 0.1; done
mariadb --no-defaults -S "$data/s" -e "
create or replace table test.things (id int primary key, city int, what varchar(40));
insert into test.things select seq, seq % 500, md5(seq) from test.seq_1_to_60000;
select count(*) from (select a.city, count(*), max(b.what) from test.things a join test.things b on a.id = b.id + 7 group by a.city) x;
select count(distinct what), sum(length(what)) from test.things; " >/dev/null
mariadb-admin --no-defaults -S "$data/s" shutdown
wait $server
