/* Memory nodes for programs that place themselves. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MPOL_BIND_TO = 2, LINE = 64, PAGE = 4096 };

/* Ends the program where it cannot place itself: what it shows would be of something else. */
static void must(int done, const char *what) {
    if (done) return;
    perror(what);
    exit(2);
}

/* Binds this thread to the first CPU of a node. */
static void run_on(int node) {
    char path[64];
    int cpu;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    FILE *list = fopen(path, "r");
    must(list && fscanf(list, "%d", &cpu) == 1, path);
    fclose(list);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    must(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
}

/* Memory in small pages; on a node where one is given, wherever it is touched. */
static char *memory(size_t size, int node) {
    char *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(start != MAP_FAILED, "mmap");
    madvise(start, size, MADV_NOHUGEPAGE);
    unsigned long mask = 1ul << (node < 0 ? 0 : node);
    must(node < 0 || syscall(SYS_mbind, start, size, MPOL_BIND_TO, &mask, 64, 0) == 0, "mbind");
    return start;
}

/* Uses all of it, this many times. */
static unsigned long use(char *start, size_t size, int step, int rounds) {
    unsigned long sum = 0;
    for (int round = 0; round < rounds; round++)
        for (size_t at = 0; at < size; at += step) sum += ++start[at];
    return sum;
}

/* Rounds as the first argument says. */
static int rounds_of(int argc, char **argv, int otherwise) {
    return argc > 1 ? atoi(argv[1]) : otherwise;
}
