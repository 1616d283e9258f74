#!/usr/bin/env bash
# Linux 6.18: while one thread of a process is in execve(2), pthread_create(3) in another one fails with EAGAIN, although no limit
# is near: clone(2) with CLONE_FS is refused as long as the shared file system state is marked as in exec
# (copy_fs in kernel/fork.c; check_unsafe_exec in fs/exec.c), and only then. Man pages name limits alone for EAGAIN, and
# a program whose execve fails (here: a file of no known format) goes on with a thread less. Some hundredths to tenths of
# all calls are refused beside a thread that calls execve over and over, none without it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
uname -sr
cat > threads.c <<'C'
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static volatile int stop;
static long execs;
static void *fails(void *file) {
    char *words[] = {file, NULL};
    while (!stop) execv(file, words), execs++;
    return errno == ENOEXEC ? NULL : file;
}
static void *nothing(void *none) { return none; }
int main(int count, char **words) {
    pthread_t exec, one;
    long made = 0, refused = 0, other = 0;
    time_t end = time(NULL) + 3;
    if (count > 1) pthread_create(&exec, NULL, fails, words[1]);
    while (time(NULL) < end) {
        int error = pthread_create(&one, NULL, nothing, NULL);
        if (!error) made++, pthread_join(one, NULL);
        else if (error == EAGAIN) refused++;
        else other++;
    }
    stop = 1;
    if (count > 1) pthread_join(exec, NULL);
    printf("%ld threads made, %ld refused with EAGAIN, %ld with another error, beside %ld calls of execve\n", made, refused, other, execs);
    return 0;
}
C
gcc -O1 -pthread threads.c -o threads
echo "no program" > file
chmod +x file
without=$(./threads) beside=$(./threads ./file)
printf 'without execve: %s\nbeside it: %s\n' "$without" "$beside"
refused() { sed -E 's/.*made, ([0-9]+) refused.*/\1/' <<< "$1"; }
[ "$(nproc)" -gt 1 ] || { echo "needs two processors"; exit 2; }
[ "$(refused "$without")" = 0 ] || { echo "threads are refused here anyway"; exit 2; }
[ "$(refused "$beside")" -gt 10 ] || { echo "changed"; exit 1; }
echo "as found: threads are refused during execve"
