/* Preloaded: applies the advice of BENCH_ADVICE, "random" or "sequential", to each mapping of a
 * file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>

static void *advised(void *at, size_t size, int flags) {
    const char *advice = getenv("BENCH_ADVICE");
    if (at != MAP_FAILED && !(flags & MAP_ANONYMOUS) && advice)
        madvise(at, size, *advice == 'r' ? MADV_RANDOM : MADV_SEQUENTIAL);
    return at;
}

void *mmap(void *at, size_t size, int access, int flags, int file, off_t offset) {
    void *(*real)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
    return advised(real(at, size, access, flags, file, offset), size, flags);
}

void *mmap64(void *at, size_t size, int access, int flags, int file, off_t offset) {
    void *(*real)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap64");
    return advised(real(at, size, access, flags, file, offset), size, flags);
}
