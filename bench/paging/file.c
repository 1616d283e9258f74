/* Reads a mapped file and counts pages per second.
 *
 * usage: file create MIB PATH
 *        file sequential|strided|random MIB THREADS PATH
 *
 * THREADS may be a list, such as 1,4. For each count the file leaves the page cache and is mapped anew;
 * `cold` is the first sweep over it, `later` the two after it. `strided` reads every eighth page, from
 * the first one on, then every eighth from the second one on, and so on. `random` reads an eighth
 * as many pages as a sweep has, chosen with repetition: Linux reads 128 KiB for each. Several threads
 * share a sweep, each with a part of the file.
 *
 * Every word of a page is read, and all of them depend on the page's number: a wrong byte is counted.
 * Prints one line of JSON; exits 1 on a wrong byte.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / 8, MOST_THREADS = 64, STRIDE = 8, LATER = 2, FEWER = 8 };
enum order { SEQUENTIAL, STRIDED, RANDOM };

static const uint64_t *memory;
static size_t pages;
static enum order order;
static int threads;

struct worker {
    pthread_t thread;
    int number;
    uint64_t seed;
    uint64_t wrong;
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

static uint64_t word_of(size_t page, size_t word) { return (page * WORDS + word) * 0x9e3779b97f4a7c15u + 1; }

static void read_page(struct worker *self, size_t page) {
    const uint64_t *words = memory + page * WORDS;
    uint64_t differences = 0;
    for (size_t word = 0; word < WORDS; word++) differences |= words[word] ^ word_of(page, word);
    self->wrong += differences != 0;
}

/* One sweep over this thread's part. */
static void *sweep(void *argument) {
    struct worker *self = argument;
    size_t first = pages / (size_t)threads * (size_t)self->number;
    size_t end = self->number + 1 == threads ? pages : first + pages / (size_t)threads;
    switch (order) {
    case SEQUENTIAL:
        for (size_t page = first; page < end; page++) read_page(self, page);
        break;
    case STRIDED:
        for (size_t start = 0; start < STRIDE; start++)
            for (size_t page = first + start; page < end; page += STRIDE) read_page(self, page);
        break;
    case RANDOM:
        for (size_t count = (end - first) / FEWER; count > 0; count--)
            read_page(self, (size_t)(((unsigned __int128)next(&self->seed) * pages) >> 64));
        break;
    }
    return NULL;
}

/* Pages per second of `sweeps` sweeps. */
static double measure(struct worker *workers, int sweeps) {
    double start = now();
    for (int each = 0; each < sweeps; each++) {
        for (int number = 0; number < threads; number++)
            pthread_create(&workers[number].thread, NULL, sweep, &workers[number]);
        for (int number = 0; number < threads; number++) pthread_join(workers[number].thread, NULL);
    }
    double seconds = now() - start;
    size_t read = order == RANDOM ? pages / FEWER : pages;
    return (double)read * sweeps / seconds;
}

static int create(const char *path) {
    int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    uint64_t words[WORDS];
    for (size_t page = 0; page < pages; page++) {
        for (size_t word = 0; word < WORDS; word++) words[word] = word_of(page, word);
        if (write(file, words, PAGE) != PAGE) {
            perror(path);
            return 2;
        }
    }
    return fsync(file) || close(file) ? 2 : 0;
}

static void map(const char *path) {
    int file = open(path, O_RDONLY);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    memory = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) {
        perror(path);
        exit(2);
    }
}

int main(int count, char **arguments) {
    int creates = count == 4 && !strcmp(arguments[1], "create");
    if (!creates && count != 5) {
        fprintf(stderr, "usage: file create MIB PATH, or sequential|strided|random MIB THREADS PATH\n");
        return 2;
    }
    pages = strtoul(arguments[2], NULL, 10) * (1 << 20) / PAGE;
    if (creates) return create(arguments[3]);
    order = !strcmp(arguments[1], "random") ? RANDOM : !strcmp(arguments[1], "strided") ? STRIDED : SEQUENTIAL;
    static struct worker workers[MOST_THREADS];
    uint64_t seed = 88172645463325252u, wrong = 0;
    printf("{\"figures\": {");
    const char *separator = "";
    for (char *each = strtok(arguments[3], ","); each; each = strtok(NULL, ",")) {
        threads = atoi(each);
        if (threads < 1 || threads > MOST_THREADS) {
            fprintf(stderr, "file: 1 to %d threads, not %s\n", MOST_THREADS, each);
            return 2;
        }
        for (int number = 0; number < threads; number++)
            workers[number] = (struct worker){.number = number, .seed = next(&seed)};
        map(arguments[4]);
        double cold = measure(workers, 1), later = measure(workers, LATER);
        printf("%s\"%d, cold\": %.0f, \"%d, later\": %.0f", separator, threads, cold, threads, later);
        separator = ", ";
        munmap((void *)memory, pages * PAGE);
        for (int number = 0; number < threads; number++) wrong += workers[number].wrong;
    }
    printf("}, \"wrong\": %lu}\n", (unsigned long)wrong);
    return wrong != 0;
}
