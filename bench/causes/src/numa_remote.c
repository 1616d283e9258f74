/* Runs on node 1 and uses memory of node 0. With a second argument it is not bound there but touched
 * there first, as by a thread that moves later: then a policy of the launcher decides. Where
 * PLACED names a file, what the kernel says of its memory is appended to it. */
#include "nodes.h"

enum { SIZE = 96 << 20 };

int main(int argc, char **argv) {
    char *start = memory(SIZE, argc > 2 ? -1 : 0);
    run_on(argc > 2 ? 0 : 1);
    memset(start, 1, SIZE);
    run_on(1);
    unsigned long sum = use(start, SIZE, LINE, rounds_of(argc, argv, 300));
    if (getenv("PLACED")) {
        char line[256];
        FILE *maps = fopen("/proc/self/numa_maps", "r"), *out = fopen(getenv("PLACED"), "a");
        must(maps && out, "PLACED");
        while (fgets(line, sizeof line, maps))
            if (strtoul(line, NULL, 16) == (unsigned long)start) fputs(line, out);
        fclose(out);
    }
    return sum == 1;
}
