/* A program that lowers its file size limit while it has evicted pages, and explicitly evicts more:
 * no signal, no wrong byte. Argument: MiB. */
#include "check.h"
#include <sys/resource.h>

int main(int count, char **arguments) {
    size_t pages = (count > 1 ? atol(arguments[1]) : 80) * 256;
    char *base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, 1);
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, 1);
    struct rlimit limit = {1 << 20, 1 << 20};
    need(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    for (int round = 2; round < 5; round++) {
        for (size_t i = 0; i < pages; i++) {
            fill(base + i * PAGE, i, round);
            if (i % 64 == 63) madvise(base + (i - 63) * PAGE, 64 * PAGE, 21 /* MADV_PAGEOUT */);
        }
        for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, round);
    }
    return verdict("file_limit");
}
