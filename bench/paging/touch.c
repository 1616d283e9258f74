/* Touches pages of one large mapping and counts touches per second.
 *
 * usage: touch random|sequential|hotset read|write MIB THREADS SECONDS [incompressible|typical|packable]
 *
 * THREADS may be a list, such as 1,2,4,8: each count is measured for SECONDS, one after the other,
 * on the same mapping. `hotset` has one thread that scans the last three quarters of the mapping,
 * in order, in addition to THREADS that touch pages of the first quarter at random: a prefetcher
 * must not evict the hot pages. `typical` contents shrink to a third with LZ4, the default not at
 * all; `packable` ones are 32-bit integers in steps below 256, like indices.
 *
 * Every page contains its number, so that a lost or foreign page is detected: each touch checks it,
 * and at the end a sample of all pages is read back. Prints one line of JSON; exits 1 on a wrong
 * byte. The mapping comes from mmap, or from umap() of the library named by UMAP_LIBRARY;
 * TOUCH_REGION_MIB makes it larger than the part in use, for libraries that manage only large
 * mappings.
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

enum { PAGE = 4096, WORDS = PAGE / 8, MOST_THREADS = 64 };

static unsigned char *memory;
static size_t pages;
static int random_order, hotset, writes;
static atomic_int stop;
static pthread_barrier_t ready;

struct worker {
    pthread_t thread;
    int number;            /* -1: the scan beside a hot set */
    size_t first, end;     /* pages that it touches */
    size_t start;          /* where it begins, in order */
    uint64_t seed;         /* none twice, or a phase would touch the pages of the one before */
    _Atomic uint64_t touches;
    uint64_t wrong;
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

static uint64_t *page_words(size_t page) { return (uint64_t *)(memory + page * PAGE); }

/* Word 0 is the page's number; words 1 to 8 count writes, one for each thread. */
static uint64_t page_number(size_t page) { return page * 0x9e3779b97f4a7c15u + 1; }

static void touch(struct worker *self, size_t page, int write) {
    volatile uint64_t *words = page_words(page);
    if (words[0] != page_number(page)) self->wrong++;
    if (write) words[1 + self->number % 8]++;
    uint64_t touches = atomic_load_explicit(&self->touches, memory_order_relaxed);
    atomic_store_explicit(&self->touches, touches + 1, memory_order_relaxed);
}

static void *work(void *argument) {
    struct worker *self = argument;
    uint64_t state = self->seed;
    size_t page = self->start, count = self->end - self->first;
    int at_random = random_order || (hotset && self->number >= 0);
    volatile uint64_t sum = 0;
    pthread_barrier_wait(&ready);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        if (at_random) {
            page = self->first + (size_t)(((unsigned __int128)next(&state) * count) >> 64);
        } else if (++page == self->end) {
            page = self->first;
        }
        touch(self, page, writes && self->number >= 0);
        if (!hotset) continue;
        /* Some work on each page, so that a hot page costs what a program would do with it. */
        uint64_t whole = 0;
        for (size_t word = 9; word < WORDS; word++) whole += page_words(page)[word];
        sum += whole;
    }
    return NULL;
}

static void *managed_map(size_t bytes) {
    const char *library = getenv("UMAP_LIBRARY");
    if (!library)
        return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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

enum contents { INCOMPRESSIBLE, TYPICAL, PACKABLE };

/* `typical`: of each eight words two are random and six from one of eight fixed runs. */
static void fill_page(size_t page, enum contents contents, uint64_t *state) {
    uint64_t *words = page_words(page);
    words[0] = page_number(page);
    uint32_t index = (uint32_t)page * 1024;
    for (size_t word = 9; word < WORDS; word++) {
        uint64_t run = 0x2545f4914f6cdd1du * (words[word - word % 8] % 8 + word % 8 + 1);
        uint64_t low = index += next(state) & 255, high = index += next(state) & 255;
        words[word] = contents == PACKABLE                   ? low | high << 32
                      : contents == TYPICAL && word % 8 >= 2 ? run
                                                             : next(state);
    }
}

static void sleep_for(double seconds) {
    struct timespec span = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&span, NULL);
}

/* Touches of the workers from `first` to before `end`. */
static uint64_t touches_of(struct worker *workers, int first, int end) {
    uint64_t sum = 0;
    for (int number = first; number < end; number++)
        sum += atomic_load_explicit(&workers[number].touches, memory_order_relaxed);
    return sum;
}

/* Touches per second of `threads` threads, and of the scan beside them, after half of `seconds` that do
 * not count: what the filling or another number of threads left behind is gone by then. */
static void measure(int threads, double seconds, double *rate, double *scan, uint64_t *wrong) {
    static struct worker workers[MOST_THREADS + 1];
    static uint64_t seed = 88172645463325252u;
    int all = threads + hotset;
    memset(workers, 0, sizeof workers);
    atomic_store(&stop, 0);
    pthread_barrier_init(&ready, NULL, (unsigned)all + 1);
    for (int number = 0; number < all; number++) {
        struct worker *one = &workers[number];
        one->number = number < threads ? number : -1;
        one->first = one->number < 0 ? pages / 4 : 0;
        one->end = hotset && one->number >= 0 ? pages / 4 : pages;
        one->seed = next(&seed) * 0x9e3779b97f4a7c15u | 1;
        one->start = one->number < 0 ? one->first : pages / (size_t)threads * (size_t)number;
        pthread_create(&one->thread, NULL, work, one);
    }
    pthread_barrier_wait(&ready);
    sleep_for(seconds / 2);
    uint64_t before = touches_of(workers, 0, threads), scanned = touches_of(workers, threads, all);
    double start = now();
    sleep_for(seconds);
    double spent = now() - start;
    *rate = (double)(touches_of(workers, 0, threads) - before) / spent;
    *scan = (double)(touches_of(workers, threads, all) - scanned) / spent;
    atomic_store(&stop, 1);
    for (int number = 0; number < all; number++) {
        pthread_join(workers[number].thread, NULL);
        *wrong += workers[number].wrong;
    }
    pthread_barrier_destroy(&ready);
}

int main(int count, char **arguments) {
    if (count != 6 && count != 7) {
        fprintf(stderr, "usage: touch random|sequential|hotset read|write MIB THREADS SECONDS "
                        "[incompressible|typical|packable]\n");
        return 2;
    }
    random_order = !strcmp(arguments[1], "random");
    hotset = !strcmp(arguments[1], "hotset");
    writes = !strcmp(arguments[2], "write");
    pages = strtoul(arguments[3], NULL, 10) * (1 << 20) / PAGE;
    double seconds = atof(arguments[5]);
    const char *kind = count == 7 ? arguments[6] : "incompressible";
    enum contents contents = !strcmp(kind, "typical")    ? TYPICAL
                             : !strcmp(kind, "packable") ? PACKABLE
                                                         : INCOMPRESSIBLE;
    const char *region = getenv("TOUCH_REGION_MIB");
    size_t bytes = region ? strtoul(region, NULL, 10) << 20 : 0;
    memory = managed_map(bytes > pages * PAGE ? bytes : pages * PAGE);
    if (memory == MAP_FAILED) {
        perror("touch");
        return 2;
    }
    madvise(memory, pages * PAGE, MADV_NOHUGEPAGE);
    uint64_t state = 1, wrong = 0;
    double start = now();
    for (size_t page = 0; page < pages; page++) fill_page(page, contents, &state);
    double fill = now() - start;
    /* Reads are measured on clean pages: one sweep makes all that stay resident so. */
    struct worker sweeper = {0};
    for (size_t page = 0; !writes && page < pages; page++) touch(&sweeper, page, 0);
    wrong += sweeper.wrong;
    printf("{\"figures\": {");
    const char *separator = "";
    for (char *each = strtok(arguments[4], ","); each; each = strtok(NULL, ",")) {
        int threads = atoi(each);
        if (threads < 1 || threads > MOST_THREADS) {
            fprintf(stderr, "touch: 1 to %d threads, not %s\n", MOST_THREADS, each);
            return 2;
        }
        double rate, scan;
        measure(threads, seconds, &rate, &scan, &wrong);
        if (hotset)
            printf("%s\"hot pages\": %.0f, \"scan\": %.0f", separator, rate, scan);
        else
            printf("%s\"%d threads\": %.0f", separator, threads, rate);
        separator = ", ";
    }
    for (size_t page = 0; page < pages; page += 97) wrong += *page_words(page) != page_number(page);
    printf("}, \"fill_seconds\": %.3f, \"wrong\": %lu}\n", fill, (unsigned long)wrong);
    fflush(stdout);
    return wrong != 0;
}
