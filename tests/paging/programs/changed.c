/* Mapped files that change: by another process, by this one, in content and in size. Whoever sees that a
 * page was written sees its new bytes. Run with --files 1M. Arguments: MiB, a folder on a disk, rounds. */
#include "check.h"
#include "listed.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>

static size_t pages;
static char path[4096];
static sigjmp_buf back;

/* Shared with the writer: what to do, and how far it is. */
static struct { atomic_ulong wanted, version, written; } *talk;

static void on_bus(int number) { (void)number; siglongjmp(back, 1); }

static int raises(const volatile char *at) {
    if (sigsetjmp(back, 1)) return 1;
    (void)*at;
    return 0;
}

static void create(uint64_t version) {
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    unsigned char page[PAGE];
    for (size_t i = 0; i < pages; i++) {
        fill(page, i, version);
        if (write(fd, page, PAGE) != PAGE) { perror(path); exit(3); }
    }
    close(fd);
}

/* Rewrites the file page by page whenever it is told to, and says how far it is. */
static void writer(void) {
    unsigned char page[PAGE];
    for (unsigned long done = 0;;) {
        unsigned long wanted = atomic_load(&talk->wanted);
        if (wanted == done) { usleep(100); continue; }
        if (wanted == ~0ul) _exit(0);
        int fd = open(path, O_WRONLY);
        for (size_t i = 0; i < pages; i++) {
            fill(page, i, wanted);
            if (pwrite(fd, page, PAGE, i * PAGE) != PAGE) _exit(3);
            atomic_store(&talk->written, i + 1);
        }
        close(fd);
        atomic_store(&talk->version, wanted);
        done = wanted;
    }
}

static char *map_file(int sharing) {
    int fd = open(path, O_RDONLY);
    char *at = mmap(NULL, pages * PAGE, PROT_READ, sharing, fd, 0);
    close(fd);
    if (at == MAP_FAILED) { perror("mmap"); exit(3); }
    return at;
}

/* The version of which a page may be, by its first word: the newer one if it is the same in both. */
static unsigned long version_of(const char *at, size_t page, unsigned long old) {
    uint64_t first = *(volatile const uint64_t *)at;
    for (unsigned long version = old + 1; version >= old; version--)
        if (first == word_of(mix(page * 1000003 + version), page, 0)) return version;
    return 0;
}

static struct { char *at; unsigned long old; atomic_int stop; } reading;

/* Reads at random while the writer is at work: what was written before a read began must be seen. */
static void *reader(void *seed_of) {
    uint64_t seed = (uintptr_t)seed_of;
    while (!atomic_load(&reading.stop)) {
        size_t page = (seed = mix(seed + 1)) % pages;
        int new = atomic_load(&talk->wanted) == reading.old + 1 &&
                  (atomic_load(&talk->version) == reading.old + 1 || atomic_load(&talk->written) > page);
        unsigned long version = version_of(reading.at + page * PAGE, page, reading.old);
        checks++;
        if (version < reading.old + new) {
            wrong++;
            fprintf(stderr, "WRONG page %lu: version %lu, wanted %lu\n", page, version, reading.old + new);
        }
    }
    return NULL;
}

static void change(unsigned long old, int sharing) {
    char *at = map_file(sharing);
    need(!is_listed(at), "the mapping is managed");
    for (size_t i = 0; i < pages; i += 2) holds(at + i * PAGE, i, old);
    reading.at = at;
    reading.old = old;
    reading.stop = 0;
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; i++) pthread_create(threads + i, NULL, reader, (void *)(i + old * 8));
    usleep(old % 7 * 1000);
    atomic_store(&talk->written, 0);
    atomic_store(&talk->wanted, old + 1);
    double began = now();
    while (atomic_load(&talk->version) != old + 1) usleep(100);
    need(now() - began < 20, "the writer does not wait for long");
    /* First touches and others. */
    for (size_t i = 0; i < pages; i++) holds(at + i * PAGE, i, old + 1);
    atomic_store(&reading.stop, 1);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    need(is_listed(at), "the mapping is the kernel's");
    munmap(at, pages * PAGE);
}

static void sizes(unsigned long version) {
    struct sigaction action = {.sa_handler = on_bus}, former;
    sigaction(SIGBUS, &action, &former);
    char *at = map_file(MAP_SHARED);
    need(!is_listed(at), "the mapping is managed");
    for (size_t i = 0; i < pages; i++) holds(at + i * PAGE, i, version);
    need(truncate(path, pages / 2 * PAGE + 100) == 0, "truncate");
    need(raises(at + (pages - 1) * PAGE) && raises(at + (pages / 2 + 1) * PAGE), "SIGBUS behind the new end");
    for (size_t i = 0; i < pages / 2; i++) holds(at + i * PAGE, i, version);
    int zeros = 1;
    for (size_t i = 100; i < PAGE; i++) zeros &= at[pages / 2 * PAGE + i] == 0;
    need(zeros, "zeros behind the new end");
    munmap(at, pages * PAGE);
    /* The last page of a file that grows. */
    at = map_file(MAP_SHARED);
    need(!is_listed(at), "the rest is managed");
    need(at[pages / 2 * PAGE + 200] == 0, "a zero behind the end");
    int fd = open(path, O_WRONLY);
    need(fd >= 0 && pwrite(fd, "new", 3, pages / 2 * PAGE + 200) == 3, "the file grows");
    need(memcmp(at + pages / 2 * PAGE + 200, "new", 3) == 0, "what this process has written itself");
    close(fd);
    munmap(at, pages * PAGE);
    sigaction(SIGBUS, &former, NULL);
}

int main(int count, char **words) {
    pages = (size_t)atoi(words[1]) * 256;
    snprintf(path, sizeof path, "%s/changed.%d", words[2], getpid());
    unsigned long rounds = atoi(words[3]), version = 1;
    (void)count;
    talk = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    create(version);
    pid_t other = fork();
    if (other == 0) writer();
    for (unsigned long round = 0; round < rounds; round++, version++)
        change(version, round % 2 ? MAP_PRIVATE : MAP_SHARED);
    atomic_store(&talk->wanted, ~0ul);
    waitpid(other, NULL, 0);
    sizes(version);
    unlink(path);
    return verdict("changed");
}
