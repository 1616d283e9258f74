/* The cost of starting a small program: the time from the request to its end, and its CPU time.
 *
 * Usage: spawn TIMES [spawn|vfork|fork [MIB]]   MIB: memory that this program owns and has written
 * Prints microseconds: the median, the minimum, and CPU time per child. Run it alone and
 * under `pagewise run --memory 64M --`; with MIB above 64 the parent's memory is managed and paged. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static char *const words[] = {"/bin/true", NULL};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static double microseconds(struct timeval time) { return time.tv_sec * 1e6 + time.tv_usec; }

static int compare(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static void become(void) {
    execv(words[0], words);
    _exit(127);
}

static pid_t start(const char *how) {
    pid_t child = -1;
    if (strcmp(how, "vfork") == 0) {
        child = vfork();
        if (child == 0) become();
    } else if (strcmp(how, "fork") == 0) {
        child = fork();
        if (child == 0) become();
    } else if (posix_spawn(&child, words[0], NULL, NULL, words, environ) != 0) {
        child = -1;
    }
    return child;
}

int main(int count, char **arguments) {
    int times = count > 1 ? atoi(arguments[1]) : 0;
    const char *how = count > 2 ? arguments[2] : "spawn";
    size_t bytes = count > 3 ? strtoul(arguments[3], NULL, 10) << 20 : 0;
    double *took = malloc((times > 0 ? times : 1) * sizeof *took);
    if (times < 1 || !took) {
        fprintf(stderr, "usage: spawn TIMES [spawn|vfork|fork [MIB]]\n");
        return 2;
    }
    if (bytes) {
        char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return 1;
        memset(memory, 1, bytes);
    }
    for (int turn = 0; turn < times; turn++) {
        double began = now();
        int status = 1;
        pid_t child = start(how);
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            fprintf(stderr, "spawn: %s did not run well (status %d)\n", words[0], status);
            return 1;
        }
        took[turn] = now() - began;
    }
    qsort(took, times, sizeof *took, compare);
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    double cpu = microseconds(used.ru_utime) + microseconds(used.ru_stime);
    printf("{\"median_us\": %.0f, \"least_us\": %.0f, \"cpu_us\": %.0f}\n", took[times / 2], took[0], cpu / times);
    return 0;
}
