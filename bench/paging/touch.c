/* Touches pages of one large mapping, in random or sequential order, and counts touches a second.
 *
 * usage: touch random|sequential read|write MIB THREADS SECONDS
 *
 * Every page carries its number, so that a lost or foreign page is seen: each touch checks it, and
 * at the end a sample of all pages is read back. Prints one line of JSON; exits 1 on a wrong byte.
 * The mapping comes from mmap, or from umap() of the library named by UMAP_LIBRARY.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

static unsigned char *memory;
static size_t pages;
static int random_order, writes, threads;
static double seconds;
static atomic_int stop;
static pthread_barrier_t ready;

struct worker {
    pthread_t thread;
    int number;
    uint64_t touches, wrong;
    char apart[64];
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Word 0 is the page's number; words 1 to 8 count writes, one for each thread. */
static void touch(struct worker *self, size_t page) {
    volatile uint64_t *words = (uint64_t *)(memory + page * PAGE);
    if (words[0] != page * 0x9e3779b97f4a7c15u + 1) self->wrong++;
    if (writes) words[1 + self->number % 8]++;
    self->touches++;
}

static void *work(void *argument) {
    struct worker *self = argument;
    uint64_t state = 88172645463325252u + (uint64_t)self->number * 7919u;
    size_t page = pages / (size_t)threads * (size_t)self->number;
    pthread_barrier_wait(&ready);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        if (random_order) {
            page = (size_t)(((unsigned __int128)next(&state) * pages) >> 64);
        } else if (++page == pages) {
            page = 0;
        }
        touch(self, page);
    }
    return NULL;
}

static void *managed_map(size_t bytes) {
    const char *library = getenv("UMAP_LIBRARY");
    if (!library)
        return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *handle = dlopen(library, RTLD_NOW);
    if (!handle) {
        fprintf(stderr, "touch: %s\n", dlerror());
        exit(2);
    }
    void *(*map)(void *, size_t, int, int, int, off_t) =
        (void *(*)(void *, size_t, int, int, int, off_t))dlsym(handle, "umap");
    const char *path = getenv("UMAP_FILE");
    int file = path ? open(path, O_RDWR | O_CREAT | O_DIRECT, 0600) : -1;
    if (!map || file < 0 || ftruncate(file, (off_t)bytes)) {
        fprintf(stderr, "touch: UMAP_LIBRARY has no umap(), or UMAP_FILE cannot be made\n");
        exit(2);
    }
    unlink(path);
    return map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
}

int main(int count, char **arguments) {
    if (count != 6) {
        fprintf(stderr, "usage: touch random|sequential read|write MIB THREADS SECONDS\n");
        return 2;
    }
    random_order = !strcmp(arguments[1], "random");
    writes = !strcmp(arguments[2], "write");
    pages = strtoul(arguments[3], NULL, 10) * (1 << 20) / PAGE;
    threads = atoi(arguments[4]);
    seconds = atof(arguments[5]);
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    memory = managed_map(pages * PAGE);
    if (memory == MAP_FAILED || !workers) {
        perror("touch");
        return 2;
    }
    madvise(memory, pages * PAGE, MADV_NOHUGEPAGE);
    /* Contents that do not compress, as the peers' pages go to disk as they are. */
    uint64_t state = 1;
    double start = now();
    for (size_t page = 0; page < pages; page++) {
        uint64_t *words = (uint64_t *)(memory + page * PAGE);
        words[0] = page * 0x9e3779b97f4a7c15u + 1;
        for (size_t word = 9; word < PAGE / 8; word++) words[word] = next(&state);
    }
    double fill = now() - start;
    /* Reads are measured on clean pages: one sweep makes all that stay resident so. */
    struct worker sweeper = {0};
    int measured = writes;
    writes = 0;
    for (size_t page = 0; !measured && page < pages; page++) touch(&sweeper, page);
    writes = measured;
    pthread_barrier_init(&ready, NULL, (unsigned)threads + 1);
    for (int number = 0; number < threads; number++) {
        workers[number].number = number;
        pthread_create(&workers[number].thread, NULL, work, &workers[number]);
    }
    pthread_barrier_wait(&ready);
    start = now();
    struct timespec span = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&span, NULL);
    atomic_store(&stop, 1);
    uint64_t touches = 0, wrong = sweeper.wrong;
    for (int number = 0; number < threads; number++) {
        pthread_join(workers[number].thread, NULL);
        touches += workers[number].touches;
        wrong += workers[number].wrong;
    }
    double spent = now() - start;
    for (size_t page = 0; page < pages; page += 97)
        wrong += *(uint64_t *)(memory + page * PAGE) != page * 0x9e3779b97f4a7c15u + 1;
    printf("{\"touches\": %lu, \"seconds\": %.3f, \"per_second\": %.0f, \"fill_seconds\": %.3f, \"wrong\": %lu}\n",
           (unsigned long)touches, spent, (double)touches / spent, fill, (unsigned long)wrong);
    fflush(stdout);
    return wrong != 0;
}
