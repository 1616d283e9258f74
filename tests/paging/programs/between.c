/* A library between the pager and libc that has memory functions of its own, as tcmalloc and profilers
 * have them (built with GUEST), and a program that is linked with it. Argument: MiB. */
#ifdef GUEST
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int between_calls;
void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    between_calls++;
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}
int munmap(void *at, size_t bytes) { return between_calls++, (int)syscall(SYS_munmap, at, bytes); }
int madvise(void *at, size_t bytes, int advice) { return between_calls++, (int)syscall(SYS_madvise, at, bytes, advice); }
#else
#include "check.h"

extern int between_calls;

int main(int count, char **arguments) {
    if (count < 2) return 2;
    between_calls = 0;
    size_t pages = (size_t)atoi(arguments[1]) * 256;
    char *mapped = map(pages * PAGE), *large = malloc((pages + 1) * PAGE);
    char *aligned = large + (-(uintptr_t)large & (PAGE - 1));
    for (uint64_t version = 1; version < 3; version++) {
        for (size_t page = 0; page < pages; page++) {
            fill(mapped + page * PAGE, page, version);
            fill(aligned + page * PAGE, page, version + 7);
        }
        for (size_t page = 0; page < pages; page++) {
            holds(mapped + page * PAGE, page, version);
            holds(aligned + page * PAGE, page, version + 7);
        }
    }
    need(munmap(mapped, pages * PAGE) == 0, "munmap");
    free(large);
    return verdict("between");
}
#endif
