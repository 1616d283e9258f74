#!/bin/sh
# A script that starts small tools again and again.
count=0
for name in $(seq 400); do
    part=$(basename "/srv/data/$name.txt" .txt)
    count=$((count + part))
done
echo $count
